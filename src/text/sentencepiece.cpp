#include "text/sentencepiece.h"

#include <algorithm>
#include <bit>
#include <cmath>

#include "base/quoted.h"
#include "text/unicode.h"

namespace unisono::text {

namespace {

// Floats to integers that sort the other way round: the highest score has the lowest rank, equal scores equal ranks.
uint32_t rank_of(float score) {
  const auto bits = std::bit_cast<uint32_t>(score + 0.0f);  // -0 to 0
  const uint32_t ascending = bits & 0x80000000 ? ~bits : bits | 0x80000000;
  return ~ascending;
}

int hex_digit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  return -1;
}

}  // namespace

std::optional<unsigned char> byte_of_piece(std::string_view piece) {
  if (piece.size() != 6 || !piece.starts_with("<0x") || piece[5] != '>') return std::nullopt;
  const int high = hex_digit(piece[3]), low = hex_digit(piece[4]);
  if (high < 0 || low < 0) return std::nullopt;
  return static_cast<unsigned char>(high << 4 | low);
}

size_t SentencePieceBpe::class_of(char32_t code) {
  if (code < 0x80) return code;
  if (code == 0x2581) return 0x80;
  return 0x81 + code % (kClasses - 0x81);
}

void SentencePieceBpe::learn_neighbours(std::string_view piece) {
  size_t before = 0;
  for (size_t at = 0; at < piece.size();) {
    const bool first = at == 0;
    const size_t here = class_of(decode_at(piece, at));
    if (!first) (*neighbours_)[before].set(here);
    before = here;
  }
}

Result<SentencePieceBpe> SentencePieceBpe::create(const Vocabulary& vocabulary) {
  SentencePieceBpe made;
  made.types_ = vocabulary.types;
  made.index_ = &vocabulary.index;
  made.unknown_ = vocabulary.unknown;
  made.byte_tokens_.fill(-1);
  made.ranks_.reserve(vocabulary.pieces.size());
  made.neighbours_ = std::make_unique<std::array<std::bitset<kClasses>, kClasses>>();
  size_t bytes = 0;
  for (size_t i = 0; i < vocabulary.pieces.size(); i++) {
    const std::string_view piece = vocabulary.pieces[i];
    if (std::isnan(vocabulary.scores[i]))
      return Error{"The score of token " + std::to_string(i) + " (" + quoted(piece) + ") isn't a number.",
                   "tokenizer.ggml.scores"};
    made.longest_ = std::max(made.longest_, piece.size());
    made.ranks_.push_back(rank_of(vocabulary.scores[i]));
    if (vocabulary.types[i] == TokenType::normal && valid_prefix(piece) == piece.size()) made.learn_neighbours(piece);
    if (vocabulary.types[i] != TokenType::byte) continue;
    const std::optional<unsigned char> byte = byte_of_piece(piece);
    if (!byte)
      return Error{"Token " + std::to_string(i) + " (" + quoted(piece) +
                       ") is of type byte but isn't written as \"<0x00>\" to \"<0xFF>\".",
                   "tokenizer.ggml.tokens"};
    if (made.byte_tokens_[*byte] >= 0)
      return Error{"Tokens " + std::to_string(made.byte_tokens_[*byte]) + " and " + std::to_string(i) +
                       " stand for the same byte, " + quoted(piece) + ".",
                   "tokenizer.ggml.tokens"};
    made.byte_tokens_[*byte] = static_cast<TokenId>(i);
    bytes++;
  }
  made.byte_fallback_ = bytes == 256;
  if (!made.byte_fallback_ && !vocabulary.unknown)
    return Error{"The vocabulary has neither a token for each of the 256 bytes nor an unknown token.",
                 "tokenizer.ggml.tokens"};
  return made;
}

TokenId SentencePieceBpe::piece(std::string_view text) const {
  if (text.size() > longest_) return -1;
  const TokenId id = index_->find(text);
  return id >= 0 && types_[static_cast<size_t>(id)] == TokenType::normal ? id : -1;
}

void SentencePieceBpe::append_uncovered(std::string_view character, std::vector<TokenId>& out) const {
  if (byte_fallback_) {
    for (const char c : character) out.push_back(byte_tokens_[static_cast<unsigned char>(c)]);
  } else if (out.empty() || out.back() != *unknown_) {
    out.push_back(*unknown_);  // one for a run of unknown characters
  }
}

void SentencePieceBpe::encode(std::string_view text, Workspace& work, std::vector<TokenId>& out) const {
  size_t begin = 0, before = 0;
  for (size_t at = 0; at < text.size();) {
    const size_t here_at = at;
    const size_t here = class_of(decode_at(text, at));
    const bool cut = here_at > 0 && (!(*neighbours_)[before].test(here) || here_at - begin >= kMaxWordBytes);
    if (cut) {
      encode_word(text.substr(begin, here_at - begin), work, out);
      begin = here_at;
    }
    before = here;
  }
  if (begin < text.size()) encode_word(text.substr(begin), work, out);
}

void SentencePieceBpe::encode_word(std::string_view word, Workspace& work, std::vector<TokenId>& out) const {
  if (word.size() > WordCache::kMaxBytes) {
    merge(word, work, out);
    return;
  }
  const uint64_t hash = hash_of(word);
  if (work.words.append_to(out, word, hash)) return;
  const size_t before = out.size();
  // Unknown tokens of neighbouring words run together, so words with one aren't kept.
  if (merge(word, work, out)) work.words.store(word, hash, std::span(out).subspan(before));
}

void SentencePieceBpe::consider(std::string_view word, Workspace& work, uint32_t left) const {
  const Part& a = work.parts[left];
  if (a.next == Part::kNone) return;
  const uint32_t bytes = a.bytes + work.parts[a.next].bytes;
  const TokenId id = piece(word.substr(a.begin, bytes));
  if (id >= 0)
    work.candidates.push_back({uint64_t{ranks_[static_cast<size_t>(id)]} << 32 | left, static_cast<int32_t>(bytes), id});
}

// False: the word holds unknown characters that became the unknown token.
bool SentencePieceBpe::merge(std::string_view word, Workspace& work, std::vector<TokenId>& out) const {
  auto& parts = work.parts;
  auto& candidates = work.candidates;
  parts.clear();
  candidates.clear();
  for (size_t at = 0; at < word.size();) {
    const size_t begin = at;
    decode_at(word, at);
    const auto n = static_cast<uint32_t>(parts.size());
    if (n > 0) parts.back().next = n;
    parts.push_back({.previous = n > 0 ? n - 1 : Part::kNone,
                     .begin = static_cast<uint32_t>(begin),
                     .bytes = static_cast<uint32_t>(at - begin),
                     .id = piece(word.substr(begin, at - begin))});
  }
  for (uint32_t i = 0; i < parts.size(); i++) consider(word, work, i);
  std::make_heap(candidates.begin(), candidates.end());

  while (!candidates.empty()) {
    std::pop_heap(candidates.begin(), candidates.end());
    const Candidate best = candidates.back();
    candidates.pop_back();
    const auto at = static_cast<uint32_t>(best.key);
    Part& left = parts[at];
    if (left.bytes == 0 || left.next == Part::kNone) continue;
    Part& right = parts[left.next];
    if (left.bytes + right.bytes != static_cast<uint32_t>(best.a)) continue;
    left.bytes += right.bytes;
    left.id = best.b;
    right.bytes = 0;
    left.next = right.next;
    if (left.next != Part::kNone) parts[left.next].previous = at;
    for (const uint32_t from : {left.previous, at}) {
      if (from == Part::kNone) continue;
      const size_t before = candidates.size();
      consider(word, work, from);
      if (candidates.size() > before) std::push_heap(candidates.begin(), candidates.end());
    }
  }
  bool covered = true;
  for (const Part& part : parts) {
    if (part.bytes == 0) continue;
    if (part.id >= 0) {
      out.push_back(part.id);
      continue;
    }
    covered &= byte_fallback_;
    append_uncovered(word.substr(part.begin, part.bytes), out);
  }
  return covered;
}

}  // namespace unisono::text

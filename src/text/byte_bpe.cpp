#include "text/byte_bpe.h"

#include <algorithm>
#include <limits>

#include "base/quoted.h"
#include "text/unicode.h"

namespace unisono::text {

namespace {

// GPT-2 writes printable Latin-1 bytes as themselves and the other 68 as U+0100 onwards, in order.
constexpr int kLastWritten = 0x143;

struct ByteMap {
  std::array<int16_t, kLastWritten + 1> byte_of{};
  ByteMap() {
    byte_of.fill(-1);
    int next = 0x100;
    for (int byte = 0; byte < 256; byte++) {
      const bool printable = (byte >= 0x21 && byte <= 0x7E) || (byte >= 0xA1 && byte != 0xAD);
      byte_of[static_cast<size_t>(printable ? byte : next++)] = static_cast<int16_t>(byte);
    }
  }
};

bool is_ordinary(const ByteBpe::Vocabulary& vocabulary, TokenId id) {
  return id >= 0 && vocabulary.types[static_cast<size_t>(id)] == TokenType::normal;
}

}  // namespace

std::optional<std::string> bytes_of_written(std::string_view written) {
  static const ByteMap map;
  if (valid_prefix(written) != written.size()) return std::nullopt;
  std::string bytes;
  bytes.reserve(written.size());
  for (size_t at = 0; at < written.size();) {
    const char32_t code = decode_at(written, at);
    if (code > kLastWritten || map.byte_of[code] < 0) return std::nullopt;
    bytes += static_cast<char>(map.byte_of[code]);
  }
  return bytes;
}

Result<ByteBpe> ByteBpe::create(const Vocabulary& vocabulary, std::span<const std::string_view> merges, bool whole_words) {
  ByteBpe bpe;
  bpe.of_byte_.fill(-1);
  for (size_t i = 0; i < vocabulary.bytes.size(); i++) {
    const std::string_view bytes = vocabulary.bytes[i];
    if (vocabulary.types[i] == TokenType::normal && bytes.size() == 1 && bytes_of_written(vocabulary.written[i]))
      bpe.of_byte_[static_cast<unsigned char>(bytes[0])] = static_cast<TokenId>(i);
  }

  const size_t most_merges = std::numeric_limits<int32_t>::max();
  const auto last = static_cast<TokenId>(vocabulary.written.size() - 1);
  const PairIndex::Limits limits{last, last, static_cast<int32_t>(std::min(merges.size(), most_merges))};
  if (merges.size() > most_merges || !PairIndex::fits(limits))
    return Error{"The vocabulary has " + std::to_string(vocabulary.written.size()) + " tokens and " +
                     std::to_string(merges.size()) + " merges; two million of each are taken.",
                 "tokenizer.ggml.merges"};
  bpe.ranks_ = PairIndex(merges.size(), limits);
  bpe.merged_.reserve(merges.size());
  std::string merged;
  for (size_t rank = 0; rank < merges.size(); rank++) {
    const std::string_view text = merges[rank];
    const size_t space = text.find(' ', 1);
    if (space == std::string_view::npos)
      return Error{"Merge " + std::to_string(rank) + " (" + quoted(text) + ") isn't two tokens with a space between them.",
                   "tokenizer.ggml.merges"};
    merged.assign(text, 0, space);
    merged.append(text, space + 1);
    const TokenId left = vocabulary.index.find(text.substr(0, space));
    const TokenId right = vocabulary.index.find(text.substr(space + 1));
    const TokenId both = vocabulary.index.find(merged);
    if (!is_ordinary(vocabulary, left) || !is_ordinary(vocabulary, right) || !is_ordinary(vocabulary, both))
      return Error{"Merge " + std::to_string(rank) + " (" + quoted(text) +
                       ") needs its two parts and their whole as normal tokens of the vocabulary.",
                   "tokenizer.ggml.merges"};
    if (!bpe.ranks_.insert(left, right, static_cast<int32_t>(rank)))
      return Error{"Merge " + std::to_string(rank) + " (" + quoted(text) + ") is there twice.", "tokenizer.ggml.merges"};
    bpe.merged_.push_back(both);
  }

  if (whole_words) {
    bpe.whole_ = TextIndex(vocabulary.bytes);
    for (size_t i = 0; i < vocabulary.bytes.size(); i++)
      if (vocabulary.types[i] == TokenType::normal && bytes_of_written(vocabulary.written[i]))
        bpe.whole_.insert(static_cast<TokenId>(i));
  }
  return bpe;
}

void ByteBpe::encode(std::string_view word, Workspace& work, std::vector<TokenId>& out) const {
  if (word.size() > WordCache::kMaxBytes) {
    const TokenId id = whole_.find(word);
    if (id >= 0) {
      out.push_back(id);
      return;
    }
    for (size_t at = 0; at < word.size(); at += kMaxWordBytes) merge(word.substr(at, kMaxWordBytes), work, out);
    return;
  }
  const uint64_t hash = hash_of(word);
  if (work.words.append_to(out, word, hash)) return;
  const size_t before = out.size();
  const TokenId id = whole_.find(word);
  if (id >= 0)
    out.push_back(id);
  else
    merge(word, work, out);
  work.words.store(word, hash, std::span(out).subspan(before));
}

void ByteBpe::consider(Workspace& work, uint32_t left) const {
  const uint32_t right = work.parts[left].next;
  if (right == Part::kNone) return;
  const TokenId a = work.parts[left].id, b = work.parts[right].id;
  const int32_t rank = ranks_.find(a, b);
  if (rank >= 0) work.candidates.push_back({uint64_t{static_cast<uint32_t>(rank)} << 32 | left, a, b});
}

void ByteBpe::merge(std::string_view word, Workspace& work, std::vector<TokenId>& out) const {
  auto& parts = work.parts;
  auto& candidates = work.candidates;
  parts.clear();
  candidates.clear();
  for (const char c : word) {
    const TokenId id = of_byte_[static_cast<unsigned char>(c)];
    if (id < 0) continue;
    const auto n = static_cast<uint32_t>(parts.size());
    if (n > 0) parts.back().next = n;
    parts.push_back({.previous = n > 0 ? n - 1 : Part::kNone, .bytes = 1, .id = id});
  }
  for (uint32_t i = 0; i < parts.size(); i++) consider(work, i);
  std::make_heap(candidates.begin(), candidates.end());

  while (!candidates.empty()) {
    std::pop_heap(candidates.begin(), candidates.end());
    const Candidate best = candidates.back();
    candidates.pop_back();
    const auto at = static_cast<uint32_t>(best.key);
    Part& left = parts[at];
    if (left.bytes == 0 || left.id != best.a || left.next == Part::kNone || parts[left.next].id != best.b) continue;
    Part& right = parts[left.next];
    left.id = merged_[best.key >> 32];
    right.bytes = 0;
    left.next = right.next;
    if (left.next != Part::kNone) parts[left.next].previous = at;
    for (const uint32_t from : {left.previous, at}) {
      if (from == Part::kNone) continue;
      const size_t before = candidates.size();
      consider(work, from);
      if (candidates.size() > before) std::push_heap(candidates.begin(), candidates.end());
    }
  }
  for (const Part& part : parts)
    if (part.bytes > 0) out.push_back(part.id);
}

}  // namespace unisono::text

#include "serve/logprobs.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <span>

#include "text/unicode.h"

namespace unisono::serve {

namespace {

constexpr double kImpossible = -9999.0;

// The length of the character that begins at text[0], or 0 when it isn't whole and valid.
size_t character_length(std::string_view text) {
  const auto byte = [&](size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned char lead = byte(0);
  if (lead < 0x80) return 1;
  const size_t n = lead >= 0xC2 && lead < 0xE0 ? 2 : lead >= 0xE0 && lead < 0xF0 ? 3 : lead >= 0xF0 && lead < 0xF5 ? 4 : 0;
  if (n == 0 || text.size() < n) return 0;
  for (size_t i = 1; i < n; i++) {
    if (!text::is_continuation(text[i])) return 0;
  }
  // Overlong forms, surrogates, and what lies above U+10FFFF.
  const bool wrong = (lead == 0xE0 && byte(1) < 0xA0) || (lead == 0xED && byte(1) >= 0xA0) ||
                     (lead == 0xF0 && byte(1) < 0x90) || (lead == 0xF4 && byte(1) >= 0x90);
  return wrong ? 0 : n;
}

bool whole_characters(std::string_view text) {
  while (!text.empty()) {
    const size_t n = character_length(text);
    if (n == 0) return false;
    text.remove_prefix(n);
  }
  return true;
}

int64_t count_characters(std::string_view text) {
  return std::ranges::count_if(text, [](char c) { return !text::is_continuation(c); });
}

JsonArray byte_array(std::string_view bytes) {
  JsonArray out;
  out.reserve(bytes.size());
  for (const char c : bytes) out.emplace_back(static_cast<int>(static_cast<unsigned char>(c)));
  return out;
}

JsonObject chat_token(const text::Tokenizer& tokenizer, engine::TokenId id, float logprob) {
  return {{"token", token_text(tokenizer, id)},
          {"logprob", json_logprob(logprob)},
          {"bytes", byte_array(tokenizer.bytes(id, true))}};
}

// More may have been asked of the engine than is told here.
std::span<const engine::TokenLogprob> likeliest(const engine::TokenResult& token, int n_top) {
  return std::span(token.top).first(std::min(token.top.size(), static_cast<size_t>(n_top)));
}

}  // namespace

std::string token_text(const text::Tokenizer& tokenizer, engine::TokenId id) {
  std::string bytes = tokenizer.bytes(id, true);
  if (whole_characters(bytes)) return bytes;
  std::string out = "bytes:";
  for (const char c : bytes) {
    const auto byte = static_cast<unsigned char>(c);
    out += "\\x";
    out += "0123456789abcdef"[byte >> 4];
    out += "0123456789abcdef"[byte & 15];
  }
  return out;
}

double json_logprob(float logprob) {
  if (!std::isfinite(logprob)) return kImpossible;
  std::array<char, 32> text{};
  const auto end = std::to_chars(text.data(), text.data() + text.size(), logprob);
  double shortest = 0;
  std::from_chars(text.data(), end.ptr, shortest);
  return shortest;
}

JsonArray chat_logprobs(const text::Tokenizer& tokenizer, const std::vector<engine::TokenResult>& tokens, int n_top) {
  JsonArray out;
  out.reserve(tokens.size());
  for (const engine::TokenResult& token : tokens) {
    JsonArray top;
    for (const engine::TokenLogprob& other : likeliest(token, n_top))
      top.push_back(chat_token(tokenizer, other.id, other.logprob));
    JsonObject entry = chat_token(tokenizer, token.id, token.logprob);
    entry["top_logprobs"] = std::move(top);
    out.push_back(std::move(entry));
  }
  return out;
}

JsonArray prompt_logprobs(const text::Tokenizer& tokenizer, const std::vector<engine::TokenResult>& tokens, int n_top) {
  JsonArray out{nullptr};
  out.reserve(tokens.size() + 1);
  for (const engine::TokenResult& token : tokens) {
    JsonObject entry;
    const auto add = [&](engine::TokenId id, float logprob, int rank) {
      entry.emplace(
          std::to_string(id),
          JsonObject{{"logprob", json_logprob(logprob)}, {"rank", rank}, {"decoded_token", token_text(tokenizer, id)}});
    };
    add(token.id, token.logprob, token.rank);
    int rank = 0;
    for (const engine::TokenLogprob& other : likeliest(token, n_top)) add(other.id, other.logprob, ++rank);
    out.push_back(std::move(entry));
  }
  return out;
}

void CompletionLogprobs::place(engine::TokenId id) {
  tokens_.emplace_back(token_text(*tokenizer_, id));
  offsets_.emplace_back(offset_);
}

void CompletionLogprobs::tell(const engine::TokenResult& token) {
  place(token.id);
  logprobs_.emplace_back(json_logprob(token.logprob));
  JsonObject top;
  for (const engine::TokenLogprob& other : likeliest(token, n_top_))
    top.emplace(token_text(*tokenizer_, other.id), json_logprob(other.logprob));
  top.emplace(token_text(*tokenizer_, token.id), json_logprob(token.logprob));
  top_.push_back(std::move(top));
}

// The prompt is a text of its own: what it leaves incomplete, the answer doesn't complete.
void CompletionLogprobs::add_prompt(engine::TokenId first, bool first_hidden,
                                    const std::vector<engine::TokenResult>& scores) {
  text::Detokenizer prompt(*tokenizer_, true, true);
  place(first);
  logprobs_.emplace_back(nullptr);
  top_.emplace_back(nullptr);
  if (!first_hidden) offset_ += count_characters(prompt.push(first));
  for (const engine::TokenResult& token : scores) {
    tell(token);
    offset_ += count_characters(prompt.push(token.id));
  }
  offset_ += count_characters(prompt.finish());
}

void CompletionLogprobs::add(const engine::TokenResult& token) {
  tell(token);
  offset_ += count_characters(detokenizer_.push(token.id));
}

JsonObject CompletionLogprobs::take() {
  JsonObject out{{"tokens", std::move(tokens_)},
                 {"token_logprobs", std::move(logprobs_)},
                 {"top_logprobs", std::move(top_)},
                 {"text_offset", std::move(offsets_)}};
  tokens_ = {};
  logprobs_ = {};
  top_ = {};
  offsets_ = {};
  return out;
}

}  // namespace unisono::serve

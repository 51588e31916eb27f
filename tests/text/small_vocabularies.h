// Vocabularies small enough to see through: all bytes, a few merges or pieces, and special tokens of each type.
#pragma once

#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

#include "text/tokenizer.h"

namespace unisono::text {

// Owns the texts that its spec views.
struct SmallVocabulary {
  std::vector<std::string> tokens{};
  std::vector<std::string> merges{};
  TokenizerSpec spec{};

  TokenId add(std::string text, TokenType type, float score = 0) {
    tokens.push_back(std::move(text));
    spec.types.push_back(type);
    spec.scores.push_back(score);
    return static_cast<TokenId>(tokens.size() - 1);
  }
  // -1: there is none.
  TokenId find(std::string_view text) const {
    const auto at = std::find(tokens.begin(), tokens.end(), text);
    return at == tokens.end() ? -1 : static_cast<TokenId>(at - tokens.begin());
  }
  // The spec with its views; valid as long as this lives and doesn't change.
  TokenizerSpec view() const {
    TokenizerSpec made = spec;
    made.tokens.assign(tokens.begin(), tokens.end());
    made.merges.assign(merges.begin(), merges.end());
    return made;
  }
};

// A byte as byte-level vocabularies write it.
inline std::string written_byte(int byte) {
  const auto utf8 = [](int code) {
    if (code < 0x80) return std::string(1, static_cast<char>(code));
    return std::string{static_cast<char>(0xC0 | code >> 6), static_cast<char>(0x80 | (code & 63))};
  };
  const auto plain = [](int b) { return (b >= 0x21 && b <= 0x7E) || (b >= 0xA1 && b != 0xAD); };
  if (plain(byte)) return utf8(byte);
  int others = 0;
  for (int b = 0; b < byte; b++) others += plain(b) ? 0 : 1;
  return utf8(0x100 + others);
}

// Tokens 0 to 255 are the bytes; then merges, then "<|start|>" and "<|end|>" (control), "<think>" (user-defined).
inline SmallVocabulary small_byte_bpe(const std::string& pre = "gpt-2") {
  SmallVocabulary made;
  for (int byte = 0; byte < 256; byte++) made.add(written_byte(byte), TokenType::normal);
  const std::string space = written_byte(' ');
  made.merges = {"h e", "l l", "he ll", "hell o", space + " t", space + "t he", "e r"};
  for (const std::string& merge : made.merges) {
    const size_t at = merge.find(' ');
    made.add(merge.substr(0, at) + merge.substr(at + 1), TokenType::normal);
  }
  made.spec.kind = TokenizerKind::byte_bpe;
  made.spec.pre = pre;
  made.spec.bos = made.add("<|start|>", TokenType::control);
  made.spec.eos = made.add("<|end|>", TokenType::control);
  made.add("<think>", TokenType::user_defined);
  return made;
}

// "<unk>", "<s>", "</s>", the bytes, then pieces by score, "<|end|>" (control) and a user-defined run of spaces.
inline SmallVocabulary small_sentencepiece() {
  SmallVocabulary made;
  made.spec.kind = TokenizerKind::sentencepiece_bpe;
  made.spec.unknown = made.add("<unk>", TokenType::unknown);
  made.spec.bos = made.add("<s>", TokenType::control);
  made.spec.eos = made.add("</s>", TokenType::control);
  for (int byte = 0; byte < 256; byte++) {
    constexpr char kHex[] = "0123456789ABCDEF";
    made.add({'<', '0', 'x', kHex[byte >> 4], kHex[byte & 15], '>'}, TokenType::byte);
  }
  const std::string space = "\xE2\x96\x81";
  float score = 0;
  for (const std::string& piece : {std::string("he"), std::string("ll"), space + "t", std::string("hell"), space + "the",
                                   std::string("hello"), space + "hello", space, std::string("h"), std::string("e"),
                                   std::string("l"), std::string("o"), std::string("t"), std::string("a")})
    made.add(piece, TokenType::normal, score--);
  made.add("<|end|>", TokenType::control);
  made.add("   ", TokenType::user_defined);
  return made;
}

}  // namespace unisono::text

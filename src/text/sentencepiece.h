// SentencePiece BPE: characters merge into pieces by score, the highest first; what no piece covers becomes bytes. It
// knows no special tokens; spaces come in as U+2581.
#pragma once

#include <array>
#include <bitset>
#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "text/hash_index.h"
#include "text/tokenizer.h"
#include "text/workspace.h"

namespace unisono::text {

// The byte of a token written "<0x0A>": four characters around exactly two hexadecimal digits.
std::optional<unsigned char> byte_of_piece(std::string_view piece);

class SentencePieceBpe {
 public:
  struct Vocabulary {
    const Texts& pieces;  // as the file has them
    std::span<const TokenType> types;
    std::span<const float> scores;  // not kept
    const TextIndex& index;         // of `pieces`
    std::optional<TokenId> unknown;
  };

  // Refused: scores that are no numbers, byte tokens that aren't written as bytes, and a vocabulary that has neither all
  // 256 byte tokens nor an unknown token. The vocabulary's memory must outlive the result, but for the scores.
  static Result<SentencePieceBpe> create(const Vocabulary& vocabulary);

  // Appends the tokens of a text without special tokens; text must be valid UTF-8.
  void encode(std::string_view text, Workspace& work, std::vector<TokenId>& out) const;

 private:
  // Characters in 256 classes: ASCII and U+2581 alone, the others together by a hash.
  static constexpr size_t kClasses = 256;
  static size_t class_of(char32_t code);

  void learn_neighbours(std::string_view piece);
  void encode_word(std::string_view word, Workspace& work, std::vector<TokenId>& out) const;
  bool merge(std::string_view word, Workspace& work, std::vector<TokenId>& out) const;
  void consider(std::string_view word, Workspace& work, uint32_t left) const;
  TokenId piece(std::string_view text) const;
  void append_uncovered(std::string_view character, std::vector<TokenId>& out) const;

  std::span<const TokenType> types_{};
  const TextIndex* index_ = nullptr;
  std::optional<TokenId> unknown_{};
  std::array<TokenId, 256> byte_tokens_{};
  bool byte_fallback_ = false;
  size_t longest_ = 0;             // bytes of the longest piece
  std::vector<uint32_t> ranks_{};  // by id: lower merges first
  // neighbours_[a][b]: some piece has a character of class a before one of class b. Where none has, no merge can cross,
  // so that the text can be cut there without changing its tokens.
  std::unique_ptr<std::array<std::bitset<kClasses>, kClasses>> neighbours_{};
};

}  // namespace unisono::text

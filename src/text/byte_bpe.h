// Byte-level BPE: words of bytes to tokens by ranked merges. It cuts no text and knows no special tokens.
#pragma once

#include <array>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "text/hash_index.h"
#include "text/tokenizer.h"
#include "text/workspace.h"

namespace unisono::text {

// The bytes of a token as vocabularies write it (GPT-2's map of bytes to printable characters); null when a character
// isn't of that map.
std::optional<std::string> bytes_of_written(std::string_view written);

class ByteBpe {
 public:
  struct Vocabulary {
    const Texts& written;  // as the file has them
    const Texts& bytes;
    std::span<const TokenType> types;
    const TextIndex& index;  // of `written`
  };

  // whole_words: a word that is a token is that token, whatever the merges say. Refused: a merge whose parts or result
  // are no ordinary tokens, or that is there twice; more tokens or merges than PairIndex takes. The vocabulary's bytes must
  // outlive the result.
  static Result<ByteBpe> create(const Vocabulary& vocabulary, std::span<const std::string_view> merges, bool whole_words);

  // Appends the word's tokens. A byte for which the vocabulary has no token is left out, as Hugging Face does: some
  // vocabularies lack control characters, and their unknown token is a control token.
  void encode(std::string_view word, Workspace& work, std::vector<TokenId>& out) const;

 private:
  void merge(std::string_view word, Workspace& work, std::vector<TokenId>& out) const;
  void consider(Workspace& work, uint32_t left) const;

  std::array<TokenId, 256> of_byte_{};  // -1: none
  PairIndex ranks_{};                   // of merges, by their two parts
  std::vector<TokenId> merged_{};       // by rank
  TextIndex whole_{};                   // empty unless whole_words
};

}  // namespace unisono::text

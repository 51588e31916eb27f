// A vocabulary as a byte trie, with the slices that make masks inside JSON strings cheap. Built once for a tokenizer and
// shared; immutable. It holds no grammar state.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "grammar/grammar.h"

namespace unisono::grammar {

class TokenTrie {
 public:
  // Children follow their parent at once; a node's subtree is [its index, end).
  struct Node {
    uint32_t end = 0;
    TokenId token = -1;  // that ends here; further tokens with the same bytes: next_alias
    uint8_t byte = 0;
  };

  // tokens: bytes by id. end_tokens: allowed exactly where the answer may end. other_control: never allowed, as are
  // tokens of no bytes. Ids outside the vocabulary are ignored.
  static std::shared_ptr<const TokenTrie> build(const std::vector<std::string>& tokens,
                                                const std::vector<TokenId>& end_tokens,
                                                const std::vector<TokenId>& other_control);

  // Its own, among all tries of the process.
  uint64_t serial() const { return serial_; }
  int vocab_size() const { return int(tokens_.size()); }
  size_t mask_words() const { return (tokens_.size() + 63) / 64; }
  // Empty for end and control tokens.
  const std::string& bytes(TokenId id) const { return tokens_[size_t(id)]; }
  bool is_end(TokenId id) const;
  const std::vector<TokenId>& end_tokens() const { return end_tokens_; }
  TokenId next_alias(TokenId id) const { return next_alias_[size_t(id)]; }  // -1: none

  const std::vector<Node>& all() const { return all_; }
  // Inside a JSON string: the tokens with a closing quote, and those without one that aren't plain characters.
  const std::vector<Node>& closing() const { return closing_; }
  const std::vector<Node>& uneven() const { return uneven_; }
  // Tokens that a free JSON string may go on with, staying inside.
  std::span<const uint64_t> inside() const { return inside_; }
  // Tokens of at most n whole characters that need no escape, n in 0..kMaxPlain.
  static constexpr uint32_t kMaxPlain = 32;
  std::span<const uint64_t> plain(uint32_t n) const { return plain_[n]; }
  // No token holds more characters than this.
  uint32_t longest() const { return longest_; }

 private:
  std::vector<std::string> tokens_{};
  std::vector<TokenId> next_alias_{}, end_tokens_{};
  std::vector<Node> all_{}, closing_{}, uneven_{};
  std::vector<uint64_t> inside_{};
  std::vector<std::vector<uint64_t>> plain_{};
  uint32_t longest_ = 0;
  uint64_t serial_ = 0;
};

}  // namespace unisono::grammar

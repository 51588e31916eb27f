// A vocabulary as a byte trie, with the slices that make masks inside JSON strings cheap. Built once for a tokenizer and
// shared; immutable. It holds no grammar state.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/texts.h"
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
  static std::shared_ptr<const TokenTrie> build(const Texts& tokens, const std::vector<TokenId>& end_tokens,
                                                const std::vector<TokenId>& other_control);

  // Its own, among all tries of the process.
  uint64_t serial() const { return serial_; }
  int vocab_size() const { return int(tokens_.size()); }
  size_t mask_words() const { return (tokens_.size() + 63) / 64; }
  // Empty for end and control tokens.
  std::string_view bytes(TokenId id) const { return tokens_[size_t(id)]; }
  bool is_end(TokenId id) const;
  const std::vector<TokenId>& end_tokens() const { return end_tokens_; }
  TokenId next_alias(TokenId id) const { return next_alias_[size_t(id)]; }  // -1: none

  const std::vector<Node>& all() const { return all_; }
  // The child of the root for a byte; all().size(): none.
  uint32_t root_child(uint8_t byte) const { return root_children_[byte]; }
  // Inside a JSON string: the tokens with a quote, and those without one that aren't plain characters.
  const std::vector<Node>& closing() const { return closing_; }
  // The most quotes that a token has behind this node of closing().
  int quotes_behind(uint32_t node) const { return quotes_behind_[node]; }
  const std::vector<Node>& uneven() const { return uneven_; }
  // For a JSON string that may hold anything, from between two characters on: tokens that stay inside it, and those
  // that close it, by what they hold after the closing quote. A node's `token` is an index of groups there, -1: none.
  std::span<const uint64_t> inside() const { return inside_; }
  std::span<const uint64_t> closed() const { return closed_; }  // nothing after the quote
  const std::vector<Node>& after_quote() const { return after_quote_; }
  const std::vector<TokenId>& group(TokenId index) const { return groups_[size_t(index)]; }
  // Plain tokens of at most n characters, n in 0..max_plain(): whole characters that need no escape.
  uint32_t max_plain() const { return uint32_t(plain_.size() - 1); }
  std::span<const uint64_t> plain(uint32_t n) const { return plain_[n]; }
  // The plain tokens as a trie; those below node i are plain_tokens [plain_first(i), plain_first(its end)).
  const std::vector<Node>& plain_nodes() const { return plain_nodes_; }
  uint32_t plain_first(uint32_t node) const { return plain_first_[node]; }
  const std::vector<TokenId>& plain_tokens() const { return plain_tokens_; }
  // No token holds more characters than this.
  uint32_t longest() const { return longest_; }

 private:
  void slice(const std::vector<TokenId>& distinct);

  Texts tokens_{};
  std::vector<TokenId> next_alias_{}, end_tokens_{};
  std::vector<Node> all_{}, closing_{}, uneven_{}, after_quote_{}, plain_nodes_{};
  std::vector<uint32_t> plain_first_{};
  std::vector<uint8_t> quotes_behind_{};
  std::vector<TokenId> plain_tokens_{};
  std::vector<uint32_t> root_children_{};
  std::vector<std::vector<TokenId>> groups_{};
  std::vector<uint64_t> inside_{}, closed_{};
  std::vector<std::vector<uint64_t>> plain_{};
  uint32_t longest_ = 0;
  uint64_t serial_ = 0;
};

}  // namespace unisono::grammar

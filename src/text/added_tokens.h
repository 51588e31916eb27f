// Tokens that are found in text as they are written, before any merging: control tokens and user-defined ones.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>
#include <vector>

#include "text/hash_index.h"
#include "text/tokenizer.h"

namespace unisono::text {

// The longest match wins, the leftmost first. Time is linear: a token has at most kMaxBytes.
class AddedTokens {
 public:
  static constexpr size_t kMaxBytes = 1024;
  static constexpr size_t kMaxBytesOfAll = size_t{1} << 24;

  struct Match {
    size_t begin = 0, end = 0;  // bytes of the text
    TokenId id = -1;            // -1: none
  };

  AddedTokens() { starts_.fill(false); }

  // text isn't empty and at most kMaxBytes long, and all together kMaxBytesOfAll; it must live until build().
  void add(std::string_view text, TokenId id);
  // To be called once, after the last add().
  void build();

  // Of all that were added, together.
  size_t bytes() const { return bytes_; }
  bool empty() const { return nodes_.size() <= 1; }
  // The first match within [from, limit).
  Match find(std::string_view text, size_t from, size_t limit) const;

 private:
  struct Added {
    std::string_view text{};
    TokenId id = -1;
  };

  std::array<bool, 256> starts_{};  // a token begins with this byte
  std::vector<Added> added_{};
  size_t bytes_ = 0;
  std::vector<TokenId> nodes_{};  // the token that ends here; -1: none
  PairIndex edges_{};             // (node, byte) to node
};

}  // namespace unisono::text

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

  struct Match {
    size_t begin = 0, end = 0;  // bytes of the text
    TokenId id = -1;            // -1: none
  };

  AddedTokens() { starts_.fill(false); }

  // marker: matches only where markers are allowed. text isn't empty and at most kMaxBytes long.
  void add(std::string_view text, TokenId id, bool marker);
  // To be called once, after the last add().
  void build();

  // The first match that begins in [from, stop); a plain one may reach beyond stop, a marker must end by markers_end.
  Match find(std::string_view text, size_t from, size_t stop, size_t markers_end) const;

 private:
  struct Node {
    TokenId plain = -1, marker = -1;
  };
  struct Added {
    std::string_view text{};
    TokenId id = -1;
    bool marker = false;
  };

  std::array<bool, 256> starts_{};  // a token begins with this byte
  std::vector<Added> added_{};
  std::vector<Node> nodes_{};
  PairIndex edges_{};  // (node, byte) to node
};

}  // namespace unisono::text

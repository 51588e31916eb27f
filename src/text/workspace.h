// What encoding writes to: buffers, the cache of words, the matcher's memory. One per running encode; kept for the next.
#pragma once

#include <cstdint>
#include <string>
#include <type_traits>
#include <vector>

#include "text/hash_index.h"
#include "text/pre_tokenizer.h"

namespace unisono::text {

// A pair of neighbours that may merge. The least key comes first.
struct Candidate {
  uint64_t key = 0;      // rank above, position of the left neighbour below
  int32_t a = 0, b = 0;  // what the pair was when it was seen: a merge next to it makes it stale

  bool operator<(const Candidate& other) const { return key > other.key; }  // for the standard heap: least on top
};

// A part of a word, linked to its neighbours.
struct Part {
  static constexpr uint32_t kNone = UINT32_MAX;
  uint32_t previous = kNone, next = kNone;
  uint32_t begin = 0, bytes = 0;  // in the word; bytes 0: it has merged into its left neighbour
  TokenId id = -1;
};

struct Workspace {
  std::string text{};      // the text as the tokenizer sees it: broken bytes replaced, spaces marked
  std::string fragment{};  // a piece of it with what is put before it, or in normal form
  std::vector<Part> parts{};
  std::vector<Candidate> candidates{};
  WordCache words{};
  PreTokenizer::Scratch matching{};

  // One very long word must not hold its memory for ever. To assign {} would keep it.
  void trim() {
    const auto drop_if_long = [](auto& buffer) {
      constexpr size_t kKeep = 1 << 20;
      if (buffer.capacity() > kKeep / sizeof(buffer[0])) std::remove_cvref_t<decltype(buffer)>().swap(buffer);
    };
    drop_if_long(text);
    drop_if_long(fragment);
    drop_if_long(parts);
    drop_if_long(candidates);
  }
};

// Positions are 32 bits wide; a longer word is cut.
inline constexpr size_t kMaxWordBytes = size_t{1} << 30;

}  // namespace unisono::text

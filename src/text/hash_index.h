// Flat hash tables of the tokenizers: texts to ids, pairs of ids to merges, and a small cache of words. Open addressing,
// linear probing, no allocation after building; they only grow while a tokenizer is made.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>
#include <cstring>
#include <span>
#include <string_view>
#include <vector>

#include "base/buffer.h"
#include "base/check.h"
#include "base/texts.h"
#include "text/tokenizer.h"

namespace unisono::text {

inline uint64_t mix(uint64_t a, uint64_t b) {
  const auto product = static_cast<unsigned __int128>(a ^ 0x9E3779B97F4A7C15) * (b ^ 0xD6E8FEB86659FD93);
  return static_cast<uint64_t>(product) ^ static_cast<uint64_t>(product >> 64);
}

inline uint64_t hash_of(std::string_view text) {
  const char* at = text.data();
  size_t left = text.size();
  const auto load = [](const char* from, size_t bytes) {
    uint64_t value = 0;
    std::memcpy(&value, from, bytes);
    return value;
  };
  uint64_t hash = left;
  for (; left > 16; at += 8, left -= 8) hash = mix(hash, load(at, 8));
  if (left > 8) return mix(hash ^ load(at, 8), load(at + left - 8, 8));
  if (left >= 4) return mix(hash ^ load(at, 4), load(at + left - 4, 4));
  uint64_t last = 0;
  for (size_t i = 0; i < left; i++) last = last << 8 | static_cast<unsigned char>(at[i]);
  return mix(hash, last);
}

// Where a search begins among `slots` slots: they need not be a power of two, so that a table is as large as its content
// asks. Lemire, Fast Random Integer Generation in an Interval (2019).
inline size_t first_of(uint64_t hash, size_t slots) { return static_cast<uint32_t>(hash) * uint64_t{slots} >> 32; }
// Where it goes on.
inline size_t next_of(size_t at, size_t slots) { return at + 1 < slots ? at + 1 : 0; }

// Texts of a vocabulary to their ids. It looks at the texts, which must stay where they are.
class TextIndex {
 public:
  TextIndex() = default;
  explicit TextIndex(const Texts& texts) : texts_(&texts), slots_(texts.size() * 2 + 2) {}

  // False, and nothing changes, when an equal text is there.
  bool insert(TokenId id) {
    const std::string_view text = (*texts_)[static_cast<size_t>(id)];
    const uint64_t hash = hash_of(text);
    size_t at = first_of(hash, slots_.size());
    for (; slots_[at].id >= 0; at = next_of(at, slots_.size()))
      if (slots_[at].tag == tag_of(hash) && (*texts_)[static_cast<size_t>(slots_[at].id)] == text) return false;
    slots_[at] = {tag_of(hash), id};
    return true;
  }

  // -1: absent.
  TokenId find(std::string_view text) const {
    if (slots_.empty()) return -1;
    const uint64_t hash = hash_of(text);
    for (size_t at = first_of(hash, slots_.size()); slots_[at].id >= 0; at = next_of(at, slots_.size()))
      if (slots_[at].tag == tag_of(hash) && (*texts_)[static_cast<size_t>(slots_[at].id)] == text) return slots_[at].id;
    return -1;
  }

 private:
  struct Slot {
    uint32_t tag = 0;
    TokenId id = -1;
  };
  static uint32_t tag_of(uint64_t hash) { return static_cast<uint32_t>(hash >> 32); }

  const Texts* texts_ = nullptr;
  std::vector<Slot> slots_{};
};

// Pairs of numbers to a number, all three in one word of 64 bits.
class PairIndex {
 public:
  // The largest that there are, none negative.
  struct Limits {
    int32_t left = 0, right = 0, value = 0;
  };
  static bool fits(const Limits& limits) { return bits_of(limits.left) + bits_of(limits.right) + value_bits_of(limits) <= 64; }

  PairIndex() = default;
  // n: how many pairs at most. The limits must fit.
  PairIndex(size_t n, const Limits& limits)
      : right_bits_(bits_of(limits.right)), value_bits_(value_bits_of(limits)), buckets_(n * 2 / kSlots + 1) {
    check(fits(limits), "a pair and its number take at most a word");
  }

  // False, and nothing changes, when the pair is there.
  bool insert(int32_t left, int32_t right, int32_t value) {
    if (find(left, right) >= 0) return false;
    const uint64_t key = key_of(left, right);
    size_t at = first_bucket(key);
    while (is_full(buckets_[at])) at = next_of(at, buckets_.size());
    *std::find(buckets_[at].slots.begin(), buckets_[at].slots.end(), kEmpty) = key << value_bits_ | (static_cast<uint64_t>(value) + 1);
    return true;
  }

  // -1: absent.
  int32_t find(int32_t left, int32_t right) const {
    const uint64_t key = key_of(left, right);
    for (size_t at = first_bucket(key);; at = next_of(at, buckets_.size())) {
      const Bucket& bucket = buckets_[at];
      // Most pairs are absent. All slots are looked at, whichever has the pair: no branch of it is guessed wrong.
      uint64_t found = 0;
      for (const uint64_t slot : bucket.slots) found |= slot >> value_bits_ == key ? slot : 0;
      const uint64_t value = found & ((uint64_t{1} << value_bits_) - 1);
      if (value != 0 || !is_full(bucket)) return static_cast<int32_t>(value) - 1;
    }
  }

 private:
  static constexpr uint64_t kEmpty = 0;  // no pair's: values are kept one greater
  static constexpr size_t kSlots = 4;
  struct alignas(32) Bucket {  // within a cache line
    std::array<uint64_t, kSlots> slots{};  // filled from the first
  };

  static int bits_of(int32_t largest) { return std::bit_width(static_cast<uint32_t>(largest)); }
  static int value_bits_of(const Limits& limits) { return std::bit_width(static_cast<uint32_t>(limits.value) + 1); }
  static bool is_full(const Bucket& bucket) { return bucket.slots.back() != kEmpty; }
  uint64_t key_of(int32_t left, int32_t right) const {
    return uint64_t{static_cast<uint32_t>(left)} << right_bits_ | static_cast<uint32_t>(right);
  }
  size_t first_bucket(uint64_t key) const { return first_of(mix(key, 0), buckets_.size()); }

  int right_bits_ = 0, value_bits_ = 1;
  std::vector<Bucket> buckets_ = std::vector<Bucket>(1);
};

// Words met before and their tokens: one cache line a word, a newcomer takes the place of whoever is there. Its memory
// becomes resident as words are met.
class WordCache {
 public:
  static constexpr size_t kMaxBytes = 34;
  static constexpr size_t kMaxTokens = 7;

  WordCache() : memory_(sizeof(Entry) << kBits), entries_(memory_.as<Entry>()) {}

  // The word must not be empty nor longer than kMaxBytes. False: unknown.
  bool append_to(std::vector<TokenId>& out, std::string_view word, uint64_t hash) const {
    const Entry& entry = entries_[hash >> (64 - kBits)];
    if (entry.bytes != word.size() || std::memcmp(entry.word, word.data(), word.size()) != 0) return false;
    out.insert(out.end(), entry.ids, entry.ids + entry.tokens);
    return true;
  }

  void store(std::string_view word, uint64_t hash, std::span<const TokenId> ids) {
    if (ids.size() > kMaxTokens) return;
    Entry& entry = entries_[hash >> (64 - kBits)];
    entry.bytes = static_cast<uint8_t>(word.size());
    entry.tokens = static_cast<uint8_t>(ids.size());
    std::memcpy(entry.word, word.data(), word.size());
    std::copy(ids.begin(), ids.end(), entry.ids);
  }

 private:
  static constexpr int kBits = 14;
  struct alignas(64) Entry {
    uint8_t bytes;  // 0: empty
    uint8_t tokens;
    char word[kMaxBytes];
    TokenId ids[kMaxTokens];
  };
  static_assert(sizeof(Entry) == 64);

  Buffer memory_;
  std::span<Entry> entries_;
};

}  // namespace unisono::text

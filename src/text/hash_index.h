// Flat hash tables of the tokenizers: texts to ids, pairs of ids to merges, and a small cache of words. Open addressing,
// linear probing, no allocation after building; they only grow while a tokenizer is made.
#pragma once

#include <bit>
#include <cstdint>
#include <cstring>
#include <span>
#include <string_view>
#include <vector>

#include "base/buffer.h"
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

// Texts of a vocabulary to their ids. It looks at the texts, which must stay where they are.
class TextIndex {
 public:
  TextIndex() = default;
  explicit TextIndex(const Texts& texts) : texts_(&texts), slots_(std::bit_ceil(texts.size() * 2 + 2)) {}

  // False, and nothing changes, when an equal text is there.
  bool insert(TokenId id) {
    const std::string_view text = (*texts_)[static_cast<size_t>(id)];
    const uint64_t hash = hash_of(text);
    size_t at = hash & (slots_.size() - 1);
    for (; slots_[at].id >= 0; at = (at + 1) & (slots_.size() - 1))
      if (slots_[at].tag == tag_of(hash) && (*texts_)[static_cast<size_t>(slots_[at].id)] == text) return false;
    slots_[at] = {tag_of(hash), id};
    return true;
  }

  // -1: absent.
  TokenId find(std::string_view text) const {
    if (slots_.empty()) return -1;
    const uint64_t hash = hash_of(text);
    for (size_t at = hash & (slots_.size() - 1); slots_[at].id >= 0; at = (at + 1) & (slots_.size() - 1))
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

// Pairs of non-negative numbers to a pair of numbers.
class PairIndex {
 public:
  struct Value {
    int32_t first = -1, second = -1;
  };

  PairIndex() : PairIndex(0) {}
  explicit PairIndex(size_t n) : slots_(std::bit_ceil(n * 2 + 2)) {}

  // False, and nothing changes, when the pair is there. At most as many pairs as were announced.
  bool insert(int32_t left, int32_t right, Value value) {
    const uint64_t key = key_of(left, right);
    size_t at = slot_of(key);
    for (; slots_[at].value.first >= 0; at = (at + 1) & (slots_.size() - 1))
      if (slots_[at].key == key) return false;
    slots_[at] = {key, value};
    return true;
  }

  // {-1, -1}: absent.
  Value find(int32_t left, int32_t right) const {
    const uint64_t key = key_of(left, right);
    for (size_t at = slot_of(key); slots_[at].value.first >= 0; at = (at + 1) & (slots_.size() - 1))
      if (slots_[at].key == key) return slots_[at].value;
    return {};
  }

 private:
  struct Slot {
    uint64_t key = 0;
    Value value{};  // first < 0: empty
  };
  static uint64_t key_of(int32_t left, int32_t right) {
    return uint64_t{static_cast<uint32_t>(left)} << 32 | static_cast<uint32_t>(right);
  }
  size_t slot_of(uint64_t key) const { return mix(key, 0) & (slots_.size() - 1); }

  std::vector<Slot> slots_;
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

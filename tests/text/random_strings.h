// The strings that tests/golden/make_tokenizers.py gives its oracles: the same generator, the same tables.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

#include "text/unicode.h"

namespace unisono::text {

class SplitMix {
 public:
  explicit SplitMix(uint64_t seed) : state_(seed) {}
  uint64_t below(uint64_t n) {
    state_ += 0x9E3779B97F4A7C15;
    uint64_t z = state_;
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EB;
    return (z ^ (z >> 31)) % n;
  }

 private:
  uint64_t state_;
};

struct CodeRange {
  uint32_t low, high;
};
// clang-format off
inline constexpr CodeRange kRanges[] = {
    {0x00, 0x20}, {0x21, 0x2F}, {0x30, 0x39}, {0x30, 0x39}, {0x3A, 0x40}, {0x41, 0x5A}, {0x61, 0x7A}, {0x61, 0x7A},
    {0x61, 0x7A}, {0x7B, 0xA0}, {0xA1, 0x24F}, {0x250, 0x36F}, {0x300, 0x36F}, {0x370, 0x52F}, {0x531, 0x6FF},
    {0x700, 0x97F}, {0x980, 0xDFF}, {0xE00, 0x10FF}, {0x1100, 0x11FF}, {0x1200, 0x1DFF}, {0x1E00, 0x1FFF},
    {0x2000, 0x206F}, {0x2070, 0x2BFF}, {0x2C00, 0x2FFF}, {0x3000, 0x30FF}, {0x3040, 0x30FF}, {0x3100, 0x4DFF},
    {0x4E00, 0x9FFF}, {0x4E00, 0x9FFF}, {0xA000, 0xABFF}, {0xAC00, 0xD7A3}, {0xE000, 0xFAFF}, {0xFB00, 0xFEFF},
    {0xFF00, 0xFFFF}, {0x10000, 0x10FFF}, {0x11000, 0x1BCFF}, {0x1D000, 0x1D7FF}, {0x1E000, 0x1EFFF},
    {0x1F000, 0x1FAFF}, {0x1F300, 0x1F64F}, {0x20000, 0x323AF}, {0xE0000, 0xE01EF}, {0x80, 0x10FFFF}};
inline constexpr std::string_view kWords[] = {
    "'s", "'S", "'ll", "'LL", "'Ve", "'re", "'D", "don't", "\r\n", "\n\n", "\t\t\t", " \n ", "\u3000", "\u00a0",
    "\u2581", "\u2581\u2581", "<|im_start|>", "<|im_end|>", "<|endoftext|>", "</s>", "<s>", "<bos>", "<eos>", "<unk>",
    "<pad>", "<start_of_turn>", "<end_of_turn>", "<unused7>", "<0x0A>", "[multimodal]", "<table>", "</h1>",
    "<|eot_id|>", "[PAD151646]", "\u200d", "\ufe0f", "e\u0301", "\uac00\u11a8", "\u1100\u1161", "\u212b",
    "\U0001F468\u200d\U0001F469\u200d\U0001F467", "3.14159", "1000000", "http://a.b/c?d=e", "SELECT * FROM t;",
    "    return x", "The quick brown fox", " the", "ing "};
// clang-format on

inline std::string random_string(uint64_t seed, uint64_t index) {
  SplitMix rng(seed ^ index << 32);
  std::string out;
  for (uint64_t atoms = 1 + rng.below(24); atoms > 0; atoms--) {
    const uint64_t kind = rng.below(8);
    if (kind < 4) {
      const CodeRange range = kRanges[rng.below(std::size(kRanges))];
      for (uint64_t n = 1 + rng.below(6); n > 0; n--) {
        const auto code = static_cast<char32_t>(range.low + rng.below(range.high - range.low + 1));
        append_utf8(out, code >= 0xD800 && code <= 0xDFFF ? U'\uFFFD' : code);
      }
    } else if (kind < 6) {
      out += kWords[rng.below(std::size(kWords))];
    } else if (kind == 6) {
      out.append(1 + rng.below(3), ' ');
    } else {
      const char c = " \n\t"[rng.below(3)];
      out.append(1 + rng.below(40), c);
    }
  }
  return out;
}

// FNV-1a over numbers as little-endian 32 bits, 0xFFFFFFFF after each list.
class Digest {
 public:
  template <class Numbers>
  void add(const Numbers& numbers) {
    for (const auto number : numbers) word(static_cast<uint32_t>(number));
    word(0xFFFFFFFF);
  }
  std::string hex() const {
    std::string out;
    for (int shift = 60; shift >= 0; shift -= 4) out += "0123456789abcdef"[hash_ >> shift & 15];
    return out;
  }

 private:
  void word(uint32_t value) {
    for (int i = 0; i < 4; i++, value >>= 8) hash_ = (hash_ ^ (value & 255)) * 0x100000001B3;
  }
  uint64_t hash_ = 0xCBF29CE484222325;
};

}  // namespace unisono::text

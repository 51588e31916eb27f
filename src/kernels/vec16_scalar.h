// Vec16 in plain C++: the reference that every other table must equal, and the fallback. Compiled for any CPU.
#pragma once

#include <cmath>
#include <cstdint>
#include <cstring>

#include "kernels/quant.h"

namespace unisono::kernels::KERNEL_ISA {

#define UNISONO_INLINE inline __attribute__((always_inline))
#define UNISONO_LANES for (int i = 0; i < 16; i++)

struct Vec {
  float v[16];
};
struct Ints {
  int32_t v[16];
};
struct Bytes {
  uint8_t v[64];
};
struct Pairs {  // two bf16 a lane
  uint16_t v[32];
};

// Tiles that fit the registers (here: any would do).
inline constexpr int kTileRows = 2, kTilePanels = 1;
inline constexpr int kTileRowsF32 = 2, kTilePanelsF32 = 1;
inline constexpr int kTileRowsBf16 = 2, kTilePanelsBf16 = 1;
inline constexpr int kTileQueries = 2, kTilePages = 1, kTileChannels = 1;
inline constexpr int kFewQueries = 2, kFewPages = 1, kFewChannels = 1;
inline constexpr int kPairQueries = 2, kPairPages = 1, kPairChannels = 1;
inline constexpr int kFetchedBlocks = 4;  // so many blocks of keys or values ahead, at most kBlocksAhead
inline constexpr int kUnpacks4BitsFrom = 16;  // rows

UNISONO_INLINE Vec zero() { return Vec{}; }
UNISONO_INLINE Vec set(float x) {
  Vec r;
  UNISONO_LANES r.v[i] = x;
  return r;
}
UNISONO_INLINE Vec load(const float* p) {
  Vec r;
  std::memcpy(r.v, p, sizeof r.v);
  return r;
}
UNISONO_INLINE void store(float* p, Vec a) { std::memcpy(p, a.v, sizeof a.v); }
UNISONO_INLINE Vec load_first(const float* p, int n) {
  Vec r{};
  for (int i = 0; i < n; i++) r.v[i] = p[i];
  return r;
}
UNISONO_INLINE void store_first(float* p, Vec a, int n) {
  for (int i = 0; i < n; i++) p[i] = a.v[i];
}
UNISONO_INLINE Vec load_half(const uint16_t* p) {
  Vec r;
  UNISONO_LANES r.v[i] = half_to_float(p[i]);
  return r;
}
UNISONO_INLINE void store_half(uint16_t* p, Vec a) { UNISONO_LANES p[i] = float_to_half(a.v[i]); }
UNISONO_INLINE void store_bf16(uint16_t* p, Vec a) {  // rounds to nearest even
  UNISONO_LANES {
    uint32_t bits;
    std::memcpy(&bits, &a.v[i], 4);
    p[i] = static_cast<uint16_t>((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
  }
}
UNISONO_INLINE Vec load_bf16(const uint16_t* p) {
  Vec r;
  UNISONO_LANES r.v[i] = bf16_to_float(p[i]);
  return r;
}

UNISONO_INLINE Vec add(Vec a, Vec b) {
  UNISONO_LANES a.v[i] += b.v[i];
  return a;
}
UNISONO_INLINE Vec sub(Vec a, Vec b) {
  UNISONO_LANES a.v[i] -= b.v[i];
  return a;
}
UNISONO_INLINE Vec mul(Vec a, Vec b) {
  UNISONO_LANES a.v[i] *= b.v[i];
  return a;
}
UNISONO_INLINE Vec div(Vec a, Vec b) {
  UNISONO_LANES a.v[i] /= b.v[i];
  return a;
}
UNISONO_INLINE Vec fma(Vec a, Vec b, Vec c) {
  UNISONO_LANES c.v[i] = std::fma(a.v[i], b.v[i], c.v[i]);
  return c;
}
// As the x86 instructions: the second operand where the comparison is false.
UNISONO_INLINE Vec max(Vec a, Vec b) {
  UNISONO_LANES b.v[i] = a.v[i] > b.v[i] ? a.v[i] : b.v[i];
  return b;
}
UNISONO_INLINE Vec min(Vec a, Vec b) {
  UNISONO_LANES b.v[i] = a.v[i] < b.v[i] ? a.v[i] : b.v[i];
  return b;
}
UNISONO_INLINE Vec abs(Vec a) {
  UNISONO_LANES a.v[i] = std::fabs(a.v[i]);
  return a;
}
// Lanes below n from a, the others from b.
UNISONO_INLINE Vec first_or(Vec a, int n, Vec b) {
  for (int i = 0; i < n && i < 16; i++) b.v[i] = a.v[i];
  return b;
}

UNISONO_INLINE Ints set_ints(int32_t x) {
  Ints r;
  UNISONO_LANES r.v[i] = x;
  return r;
}
UNISONO_INLINE Ints add(Ints a, Ints b) {  // modulo 2^32
  UNISONO_LANES a.v[i] = static_cast<int32_t>(static_cast<uint32_t>(a.v[i]) + static_cast<uint32_t>(b.v[i]));
  return a;
}
template <int N>
UNISONO_INLINE Ints shift_left(Ints a) {
  UNISONO_LANES a.v[i] = static_cast<int32_t>(static_cast<uint32_t>(a.v[i]) << N);
  return a;
}
UNISONO_INLINE Vec to_floats(Ints a) {
  Vec r;
  UNISONO_LANES r.v[i] = static_cast<float>(a.v[i]);
  return r;
}
// Round to nearest even; values beyond int32 give INT32_MIN, as the instruction does.
UNISONO_INLINE Ints round_to_ints(Vec a) {
  Ints r;
  UNISONO_LANES r.v[i] = a.v[i] >= -0x1p31f && a.v[i] < 0x1p31f ? static_cast<int32_t>(std::nearbyintf(a.v[i])) : INT32_MIN;
  return r;
}
UNISONO_INLINE Ints to_bits(Vec a) {
  Ints r;
  std::memcpy(r.v, a.v, sizeof a.v);
  return r;
}
UNISONO_INLINE Vec from_bits(Ints a) {
  Vec r;
  std::memcpy(r.v, a.v, sizeof r.v);
  return r;
}
UNISONO_INLINE Ints load_ints(const int32_t* p) {
  Ints r;
  std::memcpy(r.v, p, sizeof r.v);
  return r;
}
UNISONO_INLINE Ints widen(const uint8_t* p) {
  Ints r;
  UNISONO_LANES r.v[i] = p[i];
  return r;
}
UNISONO_INLINE Ints widen(const int8_t* p) {
  Ints r;
  UNISONO_LANES r.v[i] = p[i];
  return r;
}
// Each lane must lie in [-128, 127].
UNISONO_INLINE void store_int8(int8_t* p, Ints a) { UNISONO_LANES p[i] = static_cast<int8_t>(a.v[i]); }

// Horizontal, in one fixed tree: lanes 8 apart, then 4, 2, 1.
UNISONO_INLINE float sum(Vec a) {
  for (int step = 8; step > 0; step /= 2)
    for (int i = 0; i < step; i++) a.v[i] += a.v[i + step];
  return a.v[0];
}
UNISONO_INLINE float maximum(Vec a) {
  for (int step = 8; step > 0; step /= 2)
    for (int i = 0; i < step; i++) a.v[i] = a.v[i] > a.v[i + step] ? a.v[i] : a.v[i + step];
  return a.v[0];
}
UNISONO_INLINE int32_t sum(Ints a) {
  int32_t s = 0;
  UNISONO_LANES s += a.v[i];
  return s;
}
// out[i] is the largest of a[i].
UNISONO_INLINE void maximum_each(const Vec (&a)[4], float* out) {
  for (int i = 0; i < 4; i++) out[i] = maximum(a[i]);
}
// out[i] is the sum of a[i].
UNISONO_INLINE void sum_each(const Ints (&a)[4], int32_t* out) {
  for (int i = 0; i < 4; i++) out[i] = sum(a[i]);
}

UNISONO_INLINE Bytes load_bytes(const uint8_t* p) {
  Bytes r;
  std::memcpy(r.v, p, sizeof r.v);
  return r;
}
UNISONO_INLINE void store_bytes(uint8_t* p, Bytes a) { std::memcpy(p, a.v, sizeof a.v); }
UNISONO_INLINE Bytes low_nibbles(Bytes a) {
  for (auto& x : a.v) x &= 15;
  return a;
}
UNISONO_INLINE Bytes high_nibbles(Bytes a) {
  for (auto& x : a.v) x >>= 4;
  return a;
}
// Adds 16 to the bytes of a, below 16, for which bit G of b's is set.
template <int G>
UNISONO_INLINE Bytes add_bit4(Bytes a, Bytes b) {
  for (int i = 0; i < 64; i++) a.v[i] = static_cast<uint8_t>(a.v[i] | (b.v[i] >> G & 1) << 4);
  return a;
}
UNISONO_INLINE Bytes low_six_bits(Bytes a) {
  for (uint8_t& v : a.v) v &= 0x3f;
  return a;
}
// Of each byte the upper two bits, side by side: a's as bits 4 and 5, b's as 2 and 3, c's as 0 and 1.
UNISONO_INLINE Bytes top_pairs(Bytes a, Bytes b, Bytes c) {
  for (int i = 0; i < 64; i++) a.v[i] = static_cast<uint8_t>(a.v[i] >> 6 << 4 | b.v[i] >> 6 << 2 | c.v[i] >> 6);
  return a;
}
// acc[lane] += sum over j < 4 of w[4 lane + j] * a[j]; `four` holds the four signed bytes a, w is an operand() (plain_operands.h).
UNISONO_INLINE Ints dot(Ints acc, Bytes w, int32_t four) {
  int8_t a[4];
  std::memcpy(a, &four, 4);
  for (int i = 0; i < 16; i++)
    for (int j = 0; j < 4; j++) acc.v[i] += w.v[4 * i + j] * a[j];
  return acc;
}

UNISONO_INLINE Pairs load_pairs(const uint16_t* p) {
  Pairs r;
  std::memcpy(r.v, p, sizeof r.v);
  return r;
}
UNISONO_INLINE void store_pairs(uint16_t* p, Pairs a) { std::memcpy(p, a.v, sizeof a.v); }
// Each pair's second as 0.
UNISONO_INLINE Pairs first_of_pairs(Pairs a) {
  UNISONO_LANES a.v[2 * i + 1] = 0;
  return a;
}
// Bytes 4 lane + 0 .. 3 (below 2^Bits), less Zero: as bf16 exact, the first and third in one pair, the second and fourth in
// the other.
template <int Bits, int Zero>
UNISONO_INLINE void to_pairs(Bytes a, Pairs& even, Pairs& odd) {
  for (int i = 0; i < 64; i++) {
    const float value = static_cast<float>(a.v[i] - Zero);
    uint32_t bits;
    std::memcpy(&bits, &value, 4);
    (i % 2 == 0 ? even : odd).v[i / 4 * 2 + i % 4 / 2] = static_cast<uint16_t>(bits >> 16);
  }
}
// fma(w0, a0, fma(w1, a1, acc)) in each lane, where w0 and w1 are its pair; `two` holds a0 in its low and a1 in its high
// half.
UNISONO_INLINE Vec dot(Vec acc, Pairs w, uint32_t two) {
  const float a0 = bf16_to_float(static_cast<uint16_t>(two)), a1 = bf16_to_float(static_cast<uint16_t>(two >> 16));
  UNISONO_LANES acc.v[i] = std::fma(bf16_to_float(w.v[2 * i]), a0, std::fma(bf16_to_float(w.v[2 * i + 1]), a1, acc.v[i]));
  return acc;
}
// As store_bf16(), each four in the order 0 2 1 3: pairs (0, 2) and (1, 3) as to_pairs() has them.
UNISONO_INLINE void store_bf16_fours(uint16_t* p, Vec a) {
  uint16_t in_order[16];
  store_bf16(in_order, a);
  UNISONO_LANES p[i / 4 * 4 + (i % 4 == 1 ? 2 : i % 4 == 2 ? 1 : i % 4)] = in_order[i];
}
UNISONO_INLINE void prefetch(const void*) {}
UNISONO_INLINE void prefetch_far(const void*) {}  // not into L1

}  // namespace unisono::kernels::KERNEL_ISA

// Vec16 on AVX2 with FMA and F16C, with AVX-VNNI where it is compiled for: two registers. Same operations as vec16_scalar.h,
// where they are described.
#pragma once

#include <immintrin.h>

#include <cstdint>
#include <cstring>

namespace unisono::kernels::KERNEL_ISA {

#define UNISONO_INLINE inline __attribute__((always_inline))

struct Vec {
  __m256 lo, hi;
};
struct Ints {
  __m256i lo, hi;
};
struct Bytes {
  __m256i lo, hi;
};
struct Pairs {
  __m256i lo, hi;
};

// 16 registers of half a Vec each: small tiles.
inline constexpr int kTileRowsF32 = 3, kTilePanelsF32 = 2;
inline constexpr int kTileRowsBf16 = 3, kTilePanelsBf16 = 1;
inline constexpr int kTileQueries = 3, kTilePages = 2, kTileChannels = 2;
inline constexpr int kFewQueries = 3, kFewPages = 2, kFewChannels = 2;
inline constexpr int kPairQueries = 3, kPairPages = 1, kPairChannels = 1;
inline constexpr int kFetchedBlocks = 8;  // small tiles take less of each at a time, and are sooner done with it
inline constexpr int kUnpacks4BitsFrom = 16;
inline constexpr int kTileRows = 4, kTilePanels = 1;  // float sums wait in memory while a block is multiplied

UNISONO_INLINE __m256i lane_numbers() { return _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7); }
UNISONO_INLINE __m256i first_lanes(int n) { return _mm256_cmpgt_epi32(_mm256_set1_epi32(n), lane_numbers()); }

UNISONO_INLINE Vec zero() { return {_mm256_setzero_ps(), _mm256_setzero_ps()}; }
UNISONO_INLINE Vec set(float x) { return {_mm256_set1_ps(x), _mm256_set1_ps(x)}; }
UNISONO_INLINE Vec load(const float* p) { return {_mm256_loadu_ps(p), _mm256_loadu_ps(p + 8)}; }
UNISONO_INLINE void store(float* p, Vec a) {
  _mm256_storeu_ps(p, a.lo);
  _mm256_storeu_ps(p + 8, a.hi);
}
UNISONO_INLINE Vec load_first(const float* p, int n) {
  return {_mm256_maskload_ps(p, first_lanes(n)),
          n > 8 ? _mm256_maskload_ps(p + 8, first_lanes(n - 8)) : _mm256_setzero_ps()};
}
UNISONO_INLINE void store_first(float* p, Vec a, int n) {
  _mm256_maskstore_ps(p, first_lanes(n), a.lo);
  if (n > 8) _mm256_maskstore_ps(p + 8, first_lanes(n - 8), a.hi);
}
UNISONO_INLINE Vec load_half(const uint16_t* p) {
  return {_mm256_cvtph_ps(_mm_loadu_si128((const __m128i*)p)), _mm256_cvtph_ps(_mm_loadu_si128((const __m128i*)(p + 8)))};
}
UNISONO_INLINE void store_half(uint16_t* p, Vec a) {
  _mm_storeu_si128((__m128i*)p, _mm256_cvtps_ph(a.lo, _MM_FROUND_TO_NEAREST_INT));
  _mm_storeu_si128((__m128i*)(p + 8), _mm256_cvtps_ph(a.hi, _MM_FROUND_TO_NEAREST_INT));
}
UNISONO_INLINE __m256i rounded_bf16(__m256 a) {
  const __m256i bits = _mm256_castps_si256(a);
  const __m256i odd = _mm256_and_si256(_mm256_srli_epi32(bits, 16), _mm256_set1_epi32(1));
  return _mm256_srli_epi32(_mm256_add_epi32(_mm256_add_epi32(bits, odd), _mm256_set1_epi32(0x7fff)), 16);
}
UNISONO_INLINE __m256i bf16_bits(Vec a) {  // packing takes fours from lo and hi in turns: they are put in order
  return _mm256_permute4x64_epi64(_mm256_packus_epi32(rounded_bf16(a.lo), rounded_bf16(a.hi)), 0xd8);
}
UNISONO_INLINE void store_bf16(uint16_t* p, Vec a) { _mm256_storeu_si256((__m256i*)p, bf16_bits(a)); }
UNISONO_INLINE __m256 bf16_eight(const uint16_t* p) {
  return _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_cvtepu16_epi32(_mm_loadu_si128((const __m128i*)p)), 16));
}
UNISONO_INLINE Vec load_bf16(const uint16_t* p) { return {bf16_eight(p), bf16_eight(p + 8)}; }

UNISONO_INLINE Vec add(Vec a, Vec b) { return {_mm256_add_ps(a.lo, b.lo), _mm256_add_ps(a.hi, b.hi)}; }
UNISONO_INLINE Vec sub(Vec a, Vec b) { return {_mm256_sub_ps(a.lo, b.lo), _mm256_sub_ps(a.hi, b.hi)}; }
UNISONO_INLINE Vec mul(Vec a, Vec b) { return {_mm256_mul_ps(a.lo, b.lo), _mm256_mul_ps(a.hi, b.hi)}; }
UNISONO_INLINE Vec div(Vec a, Vec b) { return {_mm256_div_ps(a.lo, b.lo), _mm256_div_ps(a.hi, b.hi)}; }
UNISONO_INLINE Vec fma(Vec a, Vec b, Vec c) {
  return {_mm256_fmadd_ps(a.lo, b.lo, c.lo), _mm256_fmadd_ps(a.hi, b.hi, c.hi)};
}
UNISONO_INLINE Vec max(Vec a, Vec b) { return {_mm256_max_ps(a.lo, b.lo), _mm256_max_ps(a.hi, b.hi)}; }
UNISONO_INLINE Vec min(Vec a, Vec b) { return {_mm256_min_ps(a.lo, b.lo), _mm256_min_ps(a.hi, b.hi)}; }
UNISONO_INLINE Vec abs(Vec a) {
  const __m256 sign = _mm256_set1_ps(-0.0f);
  return {_mm256_andnot_ps(sign, a.lo), _mm256_andnot_ps(sign, a.hi)};
}
UNISONO_INLINE Vec first_or(Vec a, int n, Vec b) {
  return {_mm256_blendv_ps(b.lo, a.lo, _mm256_castsi256_ps(first_lanes(n))),
          _mm256_blendv_ps(b.hi, a.hi, _mm256_castsi256_ps(first_lanes(n - 8)))};
}

UNISONO_INLINE Ints set_ints(int32_t x) { return {_mm256_set1_epi32(x), _mm256_set1_epi32(x)}; }
UNISONO_INLINE Ints add(Ints a, Ints b) { return {_mm256_add_epi32(a.lo, b.lo), _mm256_add_epi32(a.hi, b.hi)}; }
template <int N>
UNISONO_INLINE Ints shift_left(Ints a) {
  return {_mm256_slli_epi32(a.lo, N), _mm256_slli_epi32(a.hi, N)};
}
UNISONO_INLINE Vec to_floats(Ints a) { return {_mm256_cvtepi32_ps(a.lo), _mm256_cvtepi32_ps(a.hi)}; }
UNISONO_INLINE Ints round_to_ints(Vec a) { return {_mm256_cvtps_epi32(a.lo), _mm256_cvtps_epi32(a.hi)}; }
UNISONO_INLINE Ints to_bits(Vec a) { return {_mm256_castps_si256(a.lo), _mm256_castps_si256(a.hi)}; }
UNISONO_INLINE Vec from_bits(Ints a) { return {_mm256_castsi256_ps(a.lo), _mm256_castsi256_ps(a.hi)}; }
UNISONO_INLINE Ints widen(const uint8_t* p) {
  const __m128i x = _mm_loadu_si128((const __m128i*)p);
  return {_mm256_cvtepu8_epi32(x), _mm256_cvtepu8_epi32(_mm_srli_si128(x, 8))};
}
UNISONO_INLINE Ints widen(const int8_t* p) {
  const __m128i x = _mm_loadu_si128((const __m128i*)p);
  return {_mm256_cvtepi8_epi32(x), _mm256_cvtepi8_epi32(_mm_srli_si128(x, 8))};
}
UNISONO_INLINE void store_int8(int8_t* p, Ints a) {
  // packs work within 128-bit halves: put the four quarters back in order.
  const __m256i words = _mm256_permute4x64_epi64(_mm256_packs_epi32(a.lo, a.hi), 0xd8);
  _mm_storeu_si128((__m128i*)p, _mm_packs_epi16(_mm256_castsi256_si128(words), _mm256_extracti128_si256(words, 1)));
}

UNISONO_INLINE float sum(Vec a) {
  const __m256 b = _mm256_add_ps(a.lo, a.hi);
  const __m128 c = _mm_add_ps(_mm256_castps256_ps128(b), _mm256_extractf128_ps(b, 1));
  const __m128 d = _mm_add_ps(c, _mm_movehl_ps(c, c));
  return _mm_cvtss_f32(_mm_add_ss(d, _mm_movehdup_ps(d)));
}
UNISONO_INLINE float maximum(Vec a) {
  const __m256 b = _mm256_max_ps(a.lo, a.hi);
  const __m128 c = _mm_max_ps(_mm256_castps256_ps128(b), _mm256_extractf128_ps(b, 1));
  const __m128 d = _mm_max_ps(c, _mm_movehl_ps(c, c));
  return _mm_cvtss_f32(_mm_max_ss(d, _mm_movehdup_ps(d)));
}
UNISONO_INLINE int32_t sum(Ints a) {
  const __m256i b = _mm256_add_epi32(a.lo, a.hi);
  const __m128i c = _mm_add_epi32(_mm256_castsi256_si128(b), _mm256_extracti128_si256(b, 1));
  const __m128i d = _mm_add_epi32(c, _mm_shuffle_epi32(c, 0x4e));
  return _mm_cvtsi128_si32(_mm_add_epi32(d, _mm_shuffle_epi32(d, 0xb1)));
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
  return {_mm256_loadu_si256((const __m256i*)p), _mm256_loadu_si256((const __m256i*)(p + 32))};
}
UNISONO_INLINE void store_bytes(uint8_t* p, Bytes a) {
  _mm256_storeu_si256((__m256i*)p, a.lo);
  _mm256_storeu_si256((__m256i*)(p + 32), a.hi);
}
UNISONO_INLINE Bytes low_nibbles(Bytes a) {
  const __m256i low = _mm256_set1_epi8(15);
  return {_mm256_and_si256(a.lo, low), _mm256_and_si256(a.hi, low)};
}
UNISONO_INLINE Bytes high_nibbles(Bytes a) {
  const __m256i low = _mm256_set1_epi8(15);
  return {_mm256_and_si256(_mm256_srli_epi16(a.lo, 4), low), _mm256_and_si256(_mm256_srli_epi16(a.hi, 4), low)};
}
template <int G>
UNISONO_INLINE __m256i bit_to_4(__m256i a) {
  if constexpr (G < 4) {
    return _mm256_slli_epi16(a, 4 - G);
  } else {
    return _mm256_srli_epi16(a, G - 4);
  }
}
template <int G>
UNISONO_INLINE Bytes add_bit4(Bytes a, Bytes b) {
  const __m256i sixteen = _mm256_set1_epi8(16);
  return {_mm256_or_si256(a.lo, _mm256_and_si256(bit_to_4<G>(b.lo), sixteen)),
          _mm256_or_si256(a.hi, _mm256_and_si256(bit_to_4<G>(b.hi), sixteen))};
}
UNISONO_INLINE Bytes low_six_bits(Bytes a) {
  const __m256i mask = _mm256_set1_epi8(0x3f);
  return {_mm256_and_si256(a.lo, mask), _mm256_and_si256(a.hi, mask)};
}
UNISONO_INLINE __m256i top_pairs(__m256i a, __m256i b, __m256i c) {
  const __m256i first = _mm256_and_si256(_mm256_srli_epi16(a, 2), _mm256_set1_epi8(0x30)),
                second = _mm256_and_si256(_mm256_srli_epi16(b, 4), _mm256_set1_epi8(0x0c)),
                third = _mm256_and_si256(_mm256_srli_epi16(c, 6), _mm256_set1_epi8(0x03));
  return _mm256_or_si256(_mm256_or_si256(first, second), third);
}
UNISONO_INLINE Bytes top_pairs(Bytes a, Bytes b, Bytes c) { return {top_pairs(a.lo, b.lo, c.lo), top_pairs(a.hi, b.hi, c.hi)}; }
#if defined(__AVXVNNI__)
UNISONO_INLINE Ints dot(Ints acc, Bytes w, int32_t four) {
  const __m256i a = _mm256_set1_epi32(four);
  return {_mm256_dpbusd_avx_epi32(acc.lo, w.lo, a), _mm256_dpbusd_avx_epi32(acc.hi, w.hi, a)};
}
#else
// In place of plain_operands.h: maddubs would saturate on 8 unsigned bits, so w + 128 is taken back to signed, and dot() needs no
// correction by the sum.
inline constexpr bool kBytesAreUnsigned = false;
// As many as fit: 8 groups of 4-bit weights are 8 * 2 * 15 * 127 = 30,480 at most.
template <int Bits>
inline constexpr int kShortGroups = INT16_MAX / (2 * 127 * ((1 << Bits) - 1));
// 8-bit weights: signed, and their magnitudes.
struct SignedBytes {
  Bytes value, magnitude;
};
inline constexpr int kOperandBytes = 128;
UNISONO_INLINE void store_operand(uint8_t* p, Bytes a) { store_bytes(p, a); }
UNISONO_INLINE void store_operand(uint8_t* p, SignedBytes a) {
  store_bytes(p, a.value);
  store_bytes(p + 64, a.magnitude);
}
template <int Bits>
UNISONO_INLINE auto load_operand(const uint8_t* p) {
  if constexpr (Bits < 8) {
    return load_bytes(p);
  } else {
    return SignedBytes{load_bytes(p), load_bytes(p + 64)};
  }
}
template <int Bits>
UNISONO_INLINE auto operand(Bytes w) {
  if constexpr (Bits < 8) {
    return w;
  } else {
    const __m256i flip = _mm256_set1_epi8(static_cast<char>(0x80));
    const Bytes value{_mm256_xor_si256(w.lo, flip), _mm256_xor_si256(w.hi, flip)};
    return SignedBytes{value, {_mm256_abs_epi8(value.lo), _mm256_abs_epi8(value.hi)}};
  }
}
// Products in pairs of 16 bits: unsigned times signed bytes.
struct Shorts {
  __m256i lo, hi;
};
UNISONO_INLINE Shorts zero_shorts() { return {_mm256_setzero_si256(), _mm256_setzero_si256()}; }
UNISONO_INLINE Shorts dot(Shorts acc, Bytes w, int32_t four) {
  const __m256i a = _mm256_set1_epi32(four);
  return {_mm256_add_epi16(acc.lo, _mm256_maddubs_epi16(w.lo, a)), _mm256_add_epi16(acc.hi, _mm256_maddubs_epi16(w.hi, a))};
}
UNISONO_INLINE Ints sum_pairs(Ints acc, Shorts a) {
  const __m256i one = _mm256_set1_epi16(1);
  return {_mm256_add_epi32(acc.lo, _mm256_madd_epi16(a.lo, one)), _mm256_add_epi32(acc.hi, _mm256_madd_epi16(a.hi, one))};
}
UNISONO_INLINE Ints dot(Ints acc, const SignedBytes& w, int32_t four) {
  const __m256i a = _mm256_set1_epi32(four);
  // |w| * (a with w's sign): 128 * 127 * 2 = 32,512 fits 16 bits.
  return sum_pairs(acc, {_mm256_maddubs_epi16(w.magnitude.lo, _mm256_sign_epi8(a, w.value.lo)),
                         _mm256_maddubs_epi16(w.magnitude.hi, _mm256_sign_epi8(a, w.value.hi))});
}
#endif

UNISONO_INLINE Pairs load_pairs(const uint16_t* p) {
  return {_mm256_loadu_si256((const __m256i*)p), _mm256_loadu_si256((const __m256i*)(p + 16))};
}
UNISONO_INLINE void store_pairs(uint16_t* p, Pairs a) {
  _mm256_storeu_si256((__m256i*)p, a.lo);
  _mm256_storeu_si256((__m256i*)(p + 16), a.hi);
}
UNISONO_INLINE Pairs first_of_pairs(Pairs a) {
  const __m256i first = _mm256_set1_epi32(0xffff);
  return {_mm256_and_si256(a.lo, first), _mm256_and_si256(a.hi, first)};
}
template <int J, int Zero>
UNISONO_INLINE __m256i byte_to_float_bits(__m256i a) {
  const __m256i byte = _mm256_and_si256(_mm256_srli_epi32(a, 8 * J), _mm256_set1_epi32(255));
  return _mm256_castps_si256(_mm256_cvtepi32_ps(_mm256_sub_epi32(byte, _mm256_set1_epi32(Zero))));
}
template <int J, int Zero>
UNISONO_INLINE __m256i pair_of(__m256i a) {
  return _mm256_or_si256(_mm256_srli_epi32(byte_to_float_bits<J, Zero>(a), 16), byte_to_float_bits<J + 2, Zero>(a));
}
template <int Bits, int Zero>
UNISONO_INLINE void to_pairs(Bytes a, Pairs& even, Pairs& odd) {
  even = {pair_of<0, Zero>(a.lo), pair_of<0, Zero>(a.hi)};
  odd = {pair_of<1, Zero>(a.lo), pair_of<1, Zero>(a.hi)};
}
UNISONO_INLINE __m256 low_bf16(__m256i a) { return _mm256_castsi256_ps(_mm256_slli_epi32(a, 16)); }
UNISONO_INLINE __m256 high_bf16(__m256i a) {
  return _mm256_castsi256_ps(_mm256_and_si256(a, _mm256_set1_epi32(static_cast<int>(0xffff0000))));
}
UNISONO_INLINE Vec dot(Vec acc, Pairs w, uint32_t two) {
  const __m256i a = _mm256_set1_epi32(static_cast<int>(two));
  const __m256 a0 = low_bf16(a), a1 = high_bf16(a);
  return {_mm256_fmadd_ps(low_bf16(w.lo), a0, _mm256_fmadd_ps(high_bf16(w.lo), a1, acc.lo)),
          _mm256_fmadd_ps(low_bf16(w.hi), a0, _mm256_fmadd_ps(high_bf16(w.hi), a1, acc.hi))};
}
UNISONO_INLINE void store_bf16_fours(uint16_t* p, Vec a) {
  const __m256i order = _mm256_setr_epi8(0, 1, 4, 5, 2, 3, 6, 7, 8, 9, 12, 13, 10, 11, 14, 15, 0, 1, 4, 5, 2, 3, 6, 7, 8, 9, 12, 13,
                                         10, 11, 14, 15);
  _mm256_storeu_si256((__m256i*)p, _mm256_shuffle_epi8(bf16_bits(a), order));
}
UNISONO_INLINE void prefetch(const void* p) { _mm_prefetch(p, _MM_HINT_T0); }
UNISONO_INLINE void prefetch_far(const void* p) { _mm_prefetch(p, _MM_HINT_T1); }  // not into L1

}  // namespace unisono::kernels::KERNEL_ISA

// Vec16 on AVX-512 with VNNI, with BF16 where it is compiled for: one register. Same operations as vec16_scalar.h, where
// they are described.
#pragma once

#include <immintrin.h>

#include <cstdint>
#include <cstring>

namespace unisono::kernels::KERNEL_ISA {

#define UNISONO_INLINE inline __attribute__((always_inline))

using Vec = __m512;
struct Ints {
  __m512i v;
};
struct Bytes {
  __m512i v;
};
struct Pairs {
  __m512i v;
};

// 5 tokens x 2 panels: 10 float and 10 integer sums, 2 rows of weights, the rest for operands, in 32 registers.
inline constexpr int kTileRows = 5, kTilePanels = 2;
inline constexpr int kTileRowsF32 = 6, kTilePanelsF32 = 2;
inline constexpr int kTileRowsBf16 = 7, kTilePanelsBf16 = 2;  // 14 chains hide the instruction's latency of 6
inline constexpr int kTileQueries = 6, kTilePages = 2, kTileChannels = 2;
inline constexpr int kFewQueries = 4, kFewPages = 4, kFewChannels = 4;
inline constexpr int kPairQueries = 6, kPairPages = 4, kPairChannels = 4;
inline constexpr int kFetchedBlocks = 4;
inline constexpr int kUnpacks4BitsFrom = 32;

UNISONO_INLINE __mmask16 first_lanes(int n) { return static_cast<__mmask16>((1u << n) - 1); }

UNISONO_INLINE Vec zero() { return _mm512_setzero_ps(); }
UNISONO_INLINE Vec set(float x) { return _mm512_set1_ps(x); }
UNISONO_INLINE Vec load(const float* p) { return _mm512_loadu_ps(p); }
UNISONO_INLINE void store(float* p, Vec a) { _mm512_storeu_ps(p, a); }
UNISONO_INLINE Vec load_first(const float* p, int n) { return _mm512_maskz_loadu_ps(first_lanes(n), p); }
UNISONO_INLINE void store_first(float* p, Vec a, int n) { _mm512_mask_storeu_ps(p, first_lanes(n), a); }
UNISONO_INLINE Vec load_half(const uint16_t* p) { return _mm512_cvtph_ps(_mm256_loadu_si256((const __m256i*)p)); }
UNISONO_INLINE void store_half(uint16_t* p, Vec a) {
  _mm256_storeu_si256((__m256i*)p, _mm512_cvtps_ph(a, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC));
}
UNISONO_INLINE __m256i bf16_bits(Vec a) {  // rounded to nearest even
#if defined(__AVX512BF16__)
  return (__m256i)_mm512_cvtneps_pbh(a);
#else
  const __m512i bits = _mm512_castps_si512(a);
  const __m512i odd = _mm512_and_si512(_mm512_srli_epi32(bits, 16), _mm512_set1_epi32(1));
  return _mm512_cvtepi32_epi16(_mm512_srli_epi32(_mm512_add_epi32(_mm512_add_epi32(bits, odd), _mm512_set1_epi32(0x7fff)), 16));
#endif
}
UNISONO_INLINE void store_bf16(uint16_t* p, Vec a) { _mm256_storeu_si256((__m256i*)p, bf16_bits(a)); }
UNISONO_INLINE Vec load_bf16(const uint16_t* p) {
  return _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(_mm256_loadu_si256((const __m256i*)p)), 16));
}

UNISONO_INLINE Vec add(Vec a, Vec b) { return _mm512_add_ps(a, b); }
UNISONO_INLINE Vec sub(Vec a, Vec b) { return _mm512_sub_ps(a, b); }
UNISONO_INLINE Vec mul(Vec a, Vec b) { return _mm512_mul_ps(a, b); }
UNISONO_INLINE Vec div(Vec a, Vec b) { return _mm512_div_ps(a, b); }
UNISONO_INLINE Vec fma(Vec a, Vec b, Vec c) { return _mm512_fmadd_ps(a, b, c); }
UNISONO_INLINE Vec max(Vec a, Vec b) { return _mm512_max_ps(a, b); }
UNISONO_INLINE Vec min(Vec a, Vec b) { return _mm512_min_ps(a, b); }
UNISONO_INLINE Vec abs(Vec a) { return _mm512_abs_ps(a); }
UNISONO_INLINE Vec first_or(Vec a, int n, Vec b) { return _mm512_mask_mov_ps(b, first_lanes(n), a); }

UNISONO_INLINE Ints set_ints(int32_t x) { return {_mm512_set1_epi32(x)}; }
UNISONO_INLINE Ints add(Ints a, Ints b) { return {_mm512_add_epi32(a.v, b.v)}; }
template <int N>
UNISONO_INLINE Ints shift_left(Ints a) {
  return {_mm512_slli_epi32(a.v, N)};
}
UNISONO_INLINE Vec to_floats(Ints a) { return _mm512_cvtepi32_ps(a.v); }
UNISONO_INLINE Ints round_to_ints(Vec a) { return {_mm512_cvtps_epi32(a)}; }
UNISONO_INLINE Ints to_bits(Vec a) { return {_mm512_castps_si512(a)}; }
UNISONO_INLINE Vec from_bits(Ints a) { return _mm512_castsi512_ps(a.v); }
UNISONO_INLINE Ints load_ints(const int32_t* p) { return {_mm512_loadu_si512(p)}; }
UNISONO_INLINE Ints widen(const uint8_t* p) { return {_mm512_cvtepu8_epi32(_mm_loadu_si128((const __m128i*)p))}; }
UNISONO_INLINE Ints widen(const int8_t* p) { return {_mm512_cvtepi8_epi32(_mm_loadu_si128((const __m128i*)p))}; }
UNISONO_INLINE void store_int8(int8_t* p, Ints a) { _mm_storeu_si128((__m128i*)p, _mm512_cvtepi32_epi8(a.v)); }

UNISONO_INLINE float sum(Vec a) {
  const __m256 b = _mm256_add_ps(_mm512_castps512_ps256(a), _mm512_extractf32x8_ps(a, 1));
  const __m128 c = _mm_add_ps(_mm256_castps256_ps128(b), _mm256_extractf128_ps(b, 1));
  const __m128 d = _mm_add_ps(c, _mm_movehl_ps(c, c));
  return _mm_cvtss_f32(_mm_add_ss(d, _mm_movehdup_ps(d)));
}
UNISONO_INLINE float maximum(Vec a) {
  const __m256 b = _mm256_max_ps(_mm512_castps512_ps256(a), _mm512_extractf32x8_ps(a, 1));
  const __m128 c = _mm_max_ps(_mm256_castps256_ps128(b), _mm256_extractf128_ps(b, 1));
  const __m128 d = _mm_max_ps(c, _mm_movehl_ps(c, c));
  return _mm_cvtss_f32(_mm_max_ss(d, _mm_movehdup_ps(d)));
}

// out[i] is the largest of a[i].
UNISONO_INLINE void maximum_each(const Vec (&a)[4], float* out) {
  const auto halve = [](Vec x, Vec y) { return max(_mm512_unpacklo_ps(x, y), _mm512_unpackhi_ps(x, y)); };
  const __m512d x = _mm512_castps_pd(halve(a[0], a[1])), y = _mm512_castps_pd(halve(a[2], a[3]));
  const Vec b = max(_mm512_castpd_ps(_mm512_unpacklo_pd(x, y)), _mm512_castpd_ps(_mm512_unpackhi_pd(x, y)));
  const __m256 c = _mm256_max_ps(_mm512_castps512_ps256(b), _mm512_extractf32x8_ps(b, 1));
  _mm_storeu_ps(out, _mm_max_ps(_mm256_castps256_ps128(c), _mm256_extractf128_ps(c, 1)));
}
// out[i] is the sum of a[i].
UNISONO_INLINE void sum_each(const Ints (&a)[4], int32_t* out) {
  const auto halve = [](__m512i x, __m512i y) { return _mm512_add_epi32(_mm512_unpacklo_epi32(x, y), _mm512_unpackhi_epi32(x, y)); };
  const __m512i x = halve(a[0].v, a[1].v), y = halve(a[2].v, a[3].v);
  const __m512i b = _mm512_add_epi32(_mm512_unpacklo_epi64(x, y), _mm512_unpackhi_epi64(x, y));
  const __m256i c = _mm256_add_epi32(_mm512_castsi512_si256(b), _mm512_extracti64x4_epi64(b, 1));
  _mm_storeu_si128((__m128i*)out, _mm_add_epi32(_mm256_castsi256_si128(c), _mm256_extracti128_si256(c, 1)));
}

UNISONO_INLINE Bytes load_bytes(const uint8_t* p) { return {_mm512_loadu_si512(p)}; }
UNISONO_INLINE void store_bytes(uint8_t* p, Bytes a) { _mm512_storeu_si512(p, a.v); }
UNISONO_INLINE Bytes low_nibbles(Bytes a) { return {_mm512_and_si512(a.v, _mm512_set1_epi8(15))}; }
UNISONO_INLINE Bytes high_nibbles(Bytes a) { return {_mm512_and_si512(_mm512_srli_epi16(a.v, 4), _mm512_set1_epi8(15))}; }
template <int G>
UNISONO_INLINE __m512i bit_to_4(__m512i a) {
  if constexpr (G < 4) {
    return _mm512_slli_epi16(a, 4 - G);
  } else {
    return _mm512_srli_epi16(a, G - 4);
  }
}
template <int G>
UNISONO_INLINE Bytes add_bit4(Bytes a, Bytes b) {
  constexpr int kAorBandC = 0xf8;  // truth table: a | (b & c)
  return {_mm512_ternarylogic_epi32(a.v, bit_to_4<G>(b.v), _mm512_set1_epi8(16), kAorBandC)};
}
UNISONO_INLINE Bytes low_six_bits(Bytes a) { return {_mm512_and_si512(a.v, _mm512_set1_epi8(0x3f))}; }
UNISONO_INLINE Bytes top_pairs(Bytes a, Bytes b, Bytes c) {
  constexpr int kAorB = 0xca, kAandBorC = 0xea;  // truth tables: b where a is 1, else c; (a & b) | c
  const __m512i ab = _mm512_ternarylogic_epi32(_mm512_set1_epi8(0x30), _mm512_srli_epi16(a.v, 2), _mm512_srli_epi16(b.v, 4), kAorB);
  const __m512i last = _mm512_and_si512(_mm512_srli_epi16(c.v, 6), _mm512_set1_epi8(0x03));
  return {_mm512_ternarylogic_epi32(_mm512_set1_epi8(0x3c), ab, last, kAandBorC)};
}
UNISONO_INLINE Ints dot(Ints acc, Bytes w, int32_t four) {
  return {_mm512_dpbusd_epi32(acc.v, w.v, _mm512_set1_epi32(four))};
}

UNISONO_INLINE Pairs load_pairs(const uint16_t* p) { return {_mm512_loadu_si512(p)}; }
UNISONO_INLINE void store_pairs(uint16_t* p, Pairs a) { _mm512_storeu_si512(p, a.v); }
UNISONO_INLINE Pairs first_of_pairs(Pairs a) { return {_mm512_and_si512(a.v, _mm512_set1_epi32(0xffff))}; }
template <int J, int Zero>
UNISONO_INLINE __m512i byte_to_float_bits(__m512i a) {
  const __m512i byte = _mm512_and_si512(_mm512_srli_epi32(a, 8 * J), _mm512_set1_epi32(255));
  return _mm512_castps_si512(_mm512_cvtepi32_ps(_mm512_sub_epi32(byte, _mm512_set1_epi32(Zero))));
}
// 0 .. 31 less Zero, in bf16.
template <int Zero>
struct alignas(64) SmallIntegers {
  uint16_t v[32];
  constexpr SmallIntegers() : v() {
    for (int i = 0; i < 32; i++)
      v[i] = static_cast<uint16_t>(__builtin_bit_cast(uint32_t, static_cast<float>(i - Zero)) >> 16);
  }
};
namespace {
template <int Zero>
constexpr SmallIntegers<Zero> kSmallIntegers;
}
template <int Bits, int Zero>
UNISONO_INLINE void to_pairs(Bytes a, Pairs& even, Pairs& odd) {
  if constexpr (Bits <= 5) {  // the low 5 bits of a word choose its value
    const __m512i values = _mm512_load_si512(kSmallIntegers<Zero>.v);
    even.v = _mm512_permutexvar_epi16(a.v, values);
    odd.v = _mm512_permutexvar_epi16(_mm512_srli_epi16(a.v, 8), values);
  } else {
    even.v = _mm512_or_si512(_mm512_srli_epi32(byte_to_float_bits<0, Zero>(a.v), 16), byte_to_float_bits<2, Zero>(a.v));
    odd.v = _mm512_or_si512(_mm512_srli_epi32(byte_to_float_bits<1, Zero>(a.v), 16), byte_to_float_bits<3, Zero>(a.v));
  }
}
// With denormals flushed the instruction equals the two steps, odd element first, on Zen 4 and Zen 5 as Intel documents it.
UNISONO_INLINE Vec dot(Vec acc, Pairs w, uint32_t two) {
  const __m512i a = _mm512_set1_epi32(static_cast<int>(two));
#if defined(__AVX512BF16__)
  return _mm512_dpbf16_ps(acc, (__m512bh)w.v, (__m512bh)a);
#else
  const __m512i high = _mm512_set1_epi32(static_cast<int>(0xffff0000));
  const Vec inner = _mm512_fmadd_ps(_mm512_castsi512_ps(_mm512_and_si512(w.v, high)),
                                    _mm512_castsi512_ps(_mm512_and_si512(a, high)), acc);
  return _mm512_fmadd_ps(_mm512_castsi512_ps(_mm512_slli_epi32(w.v, 16)), _mm512_castsi512_ps(_mm512_slli_epi32(a, 16)),
                         inner);
#endif
}
UNISONO_INLINE void store_bf16_fours(uint16_t* p, Vec a) {
  const __m256i order = _mm256_setr_epi8(0, 1, 4, 5, 2, 3, 6, 7, 8, 9, 12, 13, 10, 11, 14, 15, 0, 1, 4, 5, 2, 3, 6, 7, 8, 9, 12, 13,
                                         10, 11, 14, 15);
  _mm256_storeu_si256((__m256i*)p, _mm256_shuffle_epi8(bf16_bits(a), order));
}
UNISONO_INLINE void prefetch(const void* p) { _mm_prefetch(p, _MM_HINT_T0); }
UNISONO_INLINE void prefetch_far(const void* p) { _mm_prefetch(p, _MM_HINT_T1); }  // not into L1

}  // namespace unisono::kernels::KERNEL_ISA

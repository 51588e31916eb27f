// The loops of probe.h, compiled once per instruction set.
#include "kernels/probe.h"

#include "kernels/isa.h"

namespace unisono::kernels {

namespace KERNEL_ISA {
namespace {

// The compiler must believe that somebody uses x and may have changed it: or it would see that chains are alike.
template <class T>
UNISONO_INLINE void keep(T& x) {
#if defined(UNISONO_ISA_AVX512) || defined(UNISONO_ISA_AVX2)
  asm volatile("" : "+v"(x));
#else
  asm volatile("" : "+m"(x));
#endif
}

void read(const std::byte* memory, size_t bytes) {
#if defined(UNISONO_ISA_AVX512)
  constexpr int kWidth = 64;
#elif defined(UNISONO_ISA_AVX2)
  constexpr int kWidth = 32;
#else
  constexpr int kWidth = 16;
#endif
  using Word = uint64_t __attribute__((vector_size(kWidth), aligned(kWidth), may_alias));
  constexpr size_t kAhead = 4096;  // hardware prefetchers stop at page borders
  Word sums[4]{};
  for (size_t i = 0; i < bytes; i += 256) {
    UNISONO_UNROLL for (size_t line = 0; line < 4; line++) {
      const std::byte* at = memory + i + 64 * line;
      __builtin_prefetch(at + kAhead);
      UNISONO_UNROLL for (size_t w = 0; w < 64; w += kWidth) sums[line] ^= *reinterpret_cast<const Word*>(at + w);
    }
  }
  UNISONO_UNROLL for (size_t line = 0; line < 4; line++) keep(sums[line]);
}

// sum = step(sum, w), `rounds` times in each of `Chains` sums, so many that latencies times units are covered. A step does
// `each` operations.
template <int Chains, class Sum, class Weights, class Step>
UNISONO_INLINE double run_chains(int64_t rounds, double each, Sum zero, Weights w, Step step) {
  Sum sum[Chains];
  UNISONO_UNROLL for (int c = 0; c < Chains; c++) {
    sum[c] = zero;
    keep(sum[c]);
  }
  for (int64_t i = 0; i < rounds; i++) {
    UNISONO_UNROLL for (int c = 0; c < Chains; c++) {
      keep(w);
      sum[c] = step(sum[c], w);
    }
  }
  UNISONO_UNROLL for (int c = 0; c < Chains; c++) keep(sum[c]);
  return each * Chains * static_cast<double>(rounds);
}

#if defined(UNISONO_ISA_AVX512)
double int8(int64_t rounds) {
  const __m512i x = _mm512_set1_epi8(1);
  return run_chains<16>(rounds, 128, _mm512_setzero_si512(), _mm512_set1_epi8(3),
                        [&](__m512i sum, __m512i w) { return _mm512_dpbusd_epi32(sum, w, x); });
}
double f32(int64_t rounds) {
  const __m512 x = _mm512_set1_ps(0.25f);
  return run_chains<16>(rounds, 32, _mm512_setzero_ps(), _mm512_set1_ps(0.5f),
                        [&](__m512 sum, __m512 w) { return _mm512_fmadd_ps(sum, w, x); });
}
#elif defined(UNISONO_ISA_AVX2)
double int8(int64_t rounds) {
  const __m256i x = _mm256_set1_epi8(1);
  return run_chains<12>(rounds, 64, _mm256_setzero_si256(), _mm256_set1_epi8(3), [&](__m256i sum, __m256i w) {
#if defined(__AVXVNNI__)
    return _mm256_dpbusd_avx_epi32(sum, w, x);
#else  // summed in pairs as 16-bit numbers, as the kernels take weights of few bits
    return _mm256_add_epi16(sum, _mm256_maddubs_epi16(w, x));
#endif
  });
}
double f32(int64_t rounds) {
  const __m256 x = _mm256_set1_ps(0.25f);
  return run_chains<12>(rounds, 16, _mm256_setzero_ps(), _mm256_set1_ps(0.5f),
                        [&](__m256 sum, __m256 w) { return _mm256_fmadd_ps(sum, w, x); });
}
#else
// The reference's own operations: slow is what it is.
double int8(int64_t rounds) {
  alignas(64) uint8_t bytes[64] = {3};
  Ints sum = set_ints(0);
  for (int64_t i = 0; i < rounds; i++) {
    keep(bytes);
    sum = dot(sum, operand<8>(load_bytes(bytes)), 0x01010101);
  }
  keep(sum);
  return 128.0 * static_cast<double>(rounds);
}
double f32(int64_t rounds) {
  return run_chains<1>(rounds, 32, set(0), set(0.5f), [](Vec sum, Vec w) { return fma(sum, w, w); });
}
#endif

#if defined(__AVX512BF16__)
double bf16(int64_t rounds) {
  const auto x = (__m512bh)_mm512_set1_epi16(0x3e80);
  return run_chains<16>(rounds, 64, _mm512_setzero_ps(), (__m512bh)_mm512_set1_epi16(0x3f00),
                        [&](__m512 sum, __m512bh w) { return _mm512_dpbf16_ps(sum, w, x); });
}
#else
double bf16(int64_t rounds) { return f32(rounds); }  // two fused steps
#endif

}  // namespace
}  // namespace KERNEL_ISA

#define UNISONO_JOIN(a, b) a##b
#define UNISONO_PROBE(isa) UNISONO_JOIN(probe_, isa)
extern const Probe UNISONO_PROBE(KERNEL_ISA);
constinit const Probe UNISONO_PROBE(KERNEL_ISA) = {
    .read = KERNEL_ISA::read,
    .int8 = KERNEL_ISA::int8,
    .bf16 = KERNEL_ISA::bf16,
    .f32 = KERNEL_ISA::f32,
};

}  // namespace unisono::kernels

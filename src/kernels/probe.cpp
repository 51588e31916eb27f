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
  using Line = uint64_t __attribute__((vector_size(64), aligned(64), may_alias));
  constexpr size_t kAhead = 4096;  // hardware prefetchers stop at page borders
  Line a{}, b{}, c{}, d{};
  for (size_t i = 0; i < bytes; i += 256) {
    const auto* line = reinterpret_cast<const Line*>(memory + i);
    for (size_t j = 0; j < 256; j += 64) __builtin_prefetch(memory + i + kAhead + j);
    a ^= line[0];
    b ^= line[1];
    c ^= line[2];
    d ^= line[3];
  }
  a ^= b ^ c ^ d;
  uint64_t all = a[0] ^ a[1] ^ a[2] ^ a[3] ^ a[4] ^ a[5] ^ a[6] ^ a[7];
  asm volatile("" : "+r"(all));
}

#if defined(UNISONO_ISA_AVX512)
constexpr int kChains = 16;  // latencies times units, and some
double int8(int64_t rounds) {
  __m512i sum[kChains] = {}, w = _mm512_set1_epi8(3), x = _mm512_set1_epi8(1);
  UNISONO_UNROLL for (int c = 0; c < kChains; c++) keep(sum[c]);
  for (int64_t i = 0; i < rounds; i++) {
    keep(w);
    UNISONO_UNROLL for (int c = 0; c < kChains; c++) sum[c] = _mm512_dpbusd_epi32(sum[c], w, x);
  }
  UNISONO_UNROLL for (int c = 0; c < kChains; c++) keep(sum[c]);
  return 128.0 * kChains * static_cast<double>(rounds);
}
double f32(int64_t rounds) {
  __m512 sum[kChains] = {}, w = _mm512_set1_ps(0.5f), x = _mm512_set1_ps(0.25f);
  UNISONO_UNROLL for (int c = 0; c < kChains; c++) keep(sum[c]);
  for (int64_t i = 0; i < rounds; i++) {
    keep(w);
    UNISONO_UNROLL for (int c = 0; c < kChains; c++) sum[c] = _mm512_fmadd_ps(sum[c], w, x);
  }
  UNISONO_UNROLL for (int c = 0; c < kChains; c++) keep(sum[c]);
  return 32.0 * kChains * static_cast<double>(rounds);
}
#elif defined(UNISONO_ISA_AVX2)
constexpr int kChains = 12;
#if defined(__AVXVNNI__)
double int8(int64_t rounds) {
  __m256i sum[kChains] = {}, w = _mm256_set1_epi8(3), x = _mm256_set1_epi8(1);
  UNISONO_UNROLL for (int c = 0; c < kChains; c++) keep(sum[c]);
  for (int64_t i = 0; i < rounds; i++) {
    keep(w);
    UNISONO_UNROLL for (int c = 0; c < kChains; c++) sum[c] = _mm256_dpbusd_avx_epi32(sum[c], w, x);
  }
  UNISONO_UNROLL for (int c = 0; c < kChains; c++) keep(sum[c]);
  return 64.0 * kChains * static_cast<double>(rounds);
}
#else
// Products of bytes summed in pairs as 16-bit numbers, as the kernels take weights of few bits.
double int8(int64_t rounds) {
  __m256i sum[kChains] = {}, w = _mm256_set1_epi8(3), x = _mm256_set1_epi8(1);
  UNISONO_UNROLL for (int c = 0; c < kChains; c++) keep(sum[c]);
  for (int64_t i = 0; i < rounds; i++) {
    UNISONO_UNROLL for (int c = 0; c < kChains; c++) {
      keep(w);
      sum[c] = _mm256_add_epi16(sum[c], _mm256_maddubs_epi16(w, x));
    }
  }
  UNISONO_UNROLL for (int c = 0; c < kChains; c++) keep(sum[c]);
  return 64.0 * kChains * static_cast<double>(rounds);
}
#endif
double f32(int64_t rounds) {
  __m256 sum[kChains] = {}, w = _mm256_set1_ps(0.5f), x = _mm256_set1_ps(0.25f);
  UNISONO_UNROLL for (int c = 0; c < kChains; c++) keep(sum[c]);
  for (int64_t i = 0; i < rounds; i++) {
    keep(w);
    UNISONO_UNROLL for (int c = 0; c < kChains; c++) sum[c] = _mm256_fmadd_ps(sum[c], w, x);
  }
  UNISONO_UNROLL for (int c = 0; c < kChains; c++) keep(sum[c]);
  return 16.0 * kChains * static_cast<double>(rounds);
}
#else
// The reference's own operations: slow is what it is.
double int8(int64_t rounds) {
  alignas(64) uint8_t bytes[64] = {3};
  Ints sum = set_ints(0);
  for (int64_t i = 0; i < rounds; i++) {
    keep(bytes);
    sum = dot<8>(sum, load_bytes(bytes), 0x01010101);
  }
  keep(sum);
  return 128.0 * static_cast<double>(rounds);
}
double f32(int64_t rounds) {
  Vec sum = set(0), w = set(0.5f);
  for (int64_t i = 0; i < rounds; i++) {
    keep(w);
    sum = fma(sum, w, w);
  }
  keep(sum);
  return 32.0 * static_cast<double>(rounds);
}
#endif

#if defined(__AVX512BF16__)
double bf16(int64_t rounds) {
  __m512 sum[kChains] = {};
  __m512bh w = (__m512bh)_mm512_set1_epi16(0x3f00), x = (__m512bh)_mm512_set1_epi16(0x3e80);
  UNISONO_UNROLL for (int c = 0; c < kChains; c++) keep(sum[c]);
  for (int64_t i = 0; i < rounds; i++) {
    keep(w);
    UNISONO_UNROLL for (int c = 0; c < kChains; c++) sum[c] = _mm512_dpbf16_ps(sum[c], w, x);
  }
  UNISONO_UNROLL for (int c = 0; c < kChains; c++) keep(sum[c]);
  return 64.0 * kChains * static_cast<double>(rounds);
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

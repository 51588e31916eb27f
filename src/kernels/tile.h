// A tile's sums in registers, and the activations it takes two and four at a time: what all products share.
#pragma once

#include "kernels/vec16.h"

namespace unisono::kernels::KERNEL_ISA {

// MR rows x NP panels (or blocks, or groups of channels).
template <int MR, int NP>
UNISONO_INLINE void clear(Vec (&f)[MR][NP]) {
  UNISONO_UNROLL for (int r = 0; r < MR; r++) UNISONO_UNROLL for (int p = 0; p < NP; p++) f[r][p] = zero();
}
// first: they start at 0; else they go on from what y holds.
template <int MR, int NP>
UNISONO_INLINE void load_sums(Vec (&f)[MR][NP], const float* y, int64_t ldy, bool first) {
  UNISONO_UNROLL for (int r = 0; r < MR; r++) UNISONO_UNROLL for (int p = 0; p < NP; p++) f[r][p] =
      first ? zero() : load(y + r * ldy + 16 * p);
}
template <int MR, int NP>
UNISONO_INLINE void store_sums(const Vec (&f)[MR][NP], float* y, int64_t ldy) {
  UNISONO_UNROLL for (int r = 0; r < MR; r++) UNISONO_UNROLL for (int p = 0; p < NP; p++)
      store(y + r * ldy + 16 * p, f[r][p]);
}

UNISONO_INLINE uint32_t two_values(const uint16_t* p) {
  uint32_t two;
  __builtin_memcpy(&two, p, 4);
  return two;
}
UNISONO_INLINE int32_t four_values(const int8_t* p) {
  int32_t four;
  __builtin_memcpy(&four, p, 4);
  return four;
}

}  // namespace unisono::kernels::KERNEL_ISA

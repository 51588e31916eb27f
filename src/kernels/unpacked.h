// Blocks of panels with their weights as bytes and their scales as floats: what many rows read again and again.
#pragma once

#include "kernels/format.h"

namespace unisono::kernels::KERNEL_ISA {

struct Unpacked {
  alignas(64) uint8_t groups[8][kOperandBytes];
  alignas(64) float scales[2][16];  // the second of types with two
  alignas(64) float min[16];
};
inline constexpr int kUnpacked = 16;  // blocks unpacked at a time: those of two panels stay in L1 while the rows pass by

// Rows of so many blocks whose activations stay in a core's L2 while panel after panel passes by: about half a megabyte.
UNISONO_INLINE int rows_in_cache(int64_t row_blocks) {
  const int64_t fit = 512 * 1024 / (row_blocks * static_cast<int64_t>(sizeof(QuantBlock)));
  return static_cast<int>(fit < 60 ? 60 : fit);
}

namespace {

// Scales as block_scales() gives them, and back.
template <class F>
UNISONO_INLINE void store_scales(const Vec (&d)[2], Unpacked& out) {
  store(out.scales[0], d[0]);
  if constexpr (F::half_scales) store(out.scales[1], d[1]);
}
template <class F>
UNISONO_INLINE void unpacked_scales(const Unpacked& u, Vec (&d)[2]) {
  d[0] = load(u.scales[0]);
  if constexpr (F::half_scales) d[1] = load(u.scales[1]);
}

}  // namespace

}  // namespace unisono::kernels::KERNEL_ISA

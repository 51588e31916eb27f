// Blocks of panels with their weights as bytes and their scales as floats: what many rows read again and again.
#pragma once

#include "kernels/format.h"

namespace unisono::kernels::KERNEL_ISA {

struct Unpacked {
  alignas(64) uint8_t groups[8][64];
  alignas(64) float scale[16];
  alignas(64) float half_scale[2][16];  // of types that have them
  alignas(64) float min[16];
};
inline constexpr int kUnpacked = 16;  // blocks unpacked at a time: those of two panels stay in L1 while the rows pass by

// Rows of so many blocks whose activations stay in a core's L2 while panel after panel passes by: about half a megabyte.
UNISONO_INLINE int rows_in_cache(int64_t row_blocks) {
  const int64_t fit = 512 * 1024 / (row_blocks * static_cast<int64_t>(sizeof(QuantBlock)));
  return static_cast<int>(fit < 60 ? 60 : fit);
}

namespace {

template <class F, int G>
void unpack_groups(const typename F::Unit& u, int b, Unpacked& out) {
  if constexpr (G < 8) {
    store_bytes(out.groups[G], F::template group<G>(u, b));
    unpack_groups<F, G + 1>(u, b, out);
  }
}
template <class F>
void unpack(const typename F::Unit& u, int b, Unpacked& out) {
  unpack_groups<F, 0>(u, b, out);
  store(out.scale, F::scale(u, b));
  if constexpr (F::half_scales)
    for (int h = 0; h < 2; h++) store(out.half_scale[h], to_floats(F::half_scale(u, b, h)));
  if constexpr (F::has_min) store(out.min, F::min(u, b));
}

}  // namespace

}  // namespace unisono::kernels::KERNEL_ISA

// Rows or blocks in pieces of even sizes: 16 rows in tiles of at most 5 are 4 4 4 4, not 5 5 5 1.
#pragma once

#include "kernels/vec16.h"

namespace unisono::kernels::KERNEL_ISA {

constexpr int lesser(int a, int b) { return a < b ? a : b; }
constexpr int greater(int a, int b) { return a > b ? a : b; }
constexpr int pieces_of(int n, int most) { return (n + most - 1) / most; }

// [0, n) in pieces of at most `most`: visit(first, size).
template <class Visit>
UNISONO_INLINE void each_piece(int n, int most, Visit visit) {
  const int pieces = pieces_of(n, most);
  for (int i = 0, at = 0; i < pieces; i++) {
    const int size = (n - at + (pieces - i) - 1) / (pieces - i);
    visit(at, size);
    at += size;
  }
}

}  // namespace unisono::kernels::KERNEL_ISA

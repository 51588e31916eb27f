// int8 products of many rows with Intel's AMX; fewer rows, and all else, are the table's it stands on (select.cpp).
#include "kernels/matmul_tiles.h"

namespace unisono::kernels {

extern const Ops ops_avx512bf16;

namespace KERNEL_ISA {

namespace {

// The instructions themselves: GCC 12's intrinsics take no template's numbers, and don't tell the compiler which memory
// they read.
struct AmxUnit {
  UNISONO_INLINE void configure(const TileConfig& config) { asm volatile("ldtilecfg %0" : : "m"(config)); }
  UNISONO_INLINE void release() { asm volatile("tilerelease"); }
  template <int T>
  UNISONO_INLINE void clear() {
    asm volatile("tilezero %%tmm%c0" : : "i"(T));
  }
  template <int T>
  UNISONO_INLINE void load(const void* from, ptrdiff_t stride) {
    asm volatile("tileloadd (%0,%1,1), %%tmm%c2" : : "r"(from), "r"(stride), "i"(T) : "memory");
  }
  template <int Sum, int X, int W>
  UNISONO_INLINE void multiply() {
    asm volatile("tdpbssd %%tmm%c2, %%tmm%c1, %%tmm%c0" : : "i"(Sum), "i"(X), "i"(W));
  }
  template <int T>
  UNISONO_INLINE void store(int32_t* to, ptrdiff_t stride) {
    asm volatile("tilestored %%tmm%c2, (%0,%1,1)" : : "r"(to), "r"(stride), "i"(T) : "memory");
  }
};

}  // namespace

void matmul_int8(const PanelMatrix& w, const QuantBlock* x, int rows, float* y, int64_t ldy, int begin, int end,
                 Upcoming then) {
  if (rows < kTileSide) return ops_avx512bf16.matmul_int8(w, x, rows, y, ldy, begin, end, then);
  AmxUnit unit;
  matmul_tiles(unit, w, x, rows, y, ldy, begin, end, then);
}

// The most that tiles can do, for probe.h: products of full depth, of tiles that stay.
double probe_int8(int64_t rounds) {
  AmxUnit unit;
  unit.configure(tile_config(64));
  for (int64_t i = 0; i < rounds; i++) {
    unit.multiply<0, 4, 6>();
    unit.multiply<1, 4, 7>();
    unit.multiply<2, 5, 6>();
    unit.multiply<3, 5, 7>();
  }
  unit.release();
  return 4.0 * 2 * kTileSide * 16 * 64 * static_cast<double>(rounds);
}

}  // namespace KERNEL_ISA
}  // namespace unisono::kernels

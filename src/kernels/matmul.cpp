// Matrix products over panels. A lane of a panel is an output; its sum runs over K in order, whatever the tile, so that
// tiles, rows and panels can be dealt out freely. Compiled once per instruction set.
#include "kernels/ahead.h"
#include "kernels/format.h"
#include "kernels/isa.h"
#include "kernels/pieces.h"

namespace unisono::kernels::KERNEL_ISA {

namespace {

constexpr int lesser(int a, int b) { return a < b ? a : b; }

// Activations of about this size stay in a core's L2 while panel after panel passes by.
constexpr int64_t kActivationBytes = 512 * 1024;

template <class F, int G>
UNISONO_INLINE int32_t four_values(const QuantBlock& x) {
  int32_t four;
  __builtin_memcpy(&four, x.q + 4 * G, 4);
  return four;
}

// What `zero` takes from an integer dot: -zero * sum of the activations, unless dot() does it itself.
template <class F>
UNISONO_INLINE Ints start(int32_t minus_sum) {
  if constexpr (F::zero == 0 || (F::bits == 8 && !kBytesAreUnsigned)) {
    return set_ints(0);
  } else {
    return set_ints(minus_sum * F::zero);
  }
}

// Groups Begin .. End - 1 of one block, MR rows x NP panels.
template <class F, int MR, int NP, int Begin, int End>
UNISONO_INLINE void dots(Ints (&sums)[MR][NP], const typename F::Unit* w, size_t panel_units, int b, const QuantBlock* x,
                         int64_t row_blocks) {
  if constexpr (Begin < End) {
    Bytes bytes[NP];
    UNISONO_UNROLL for (int p = 0; p < NP; p++) bytes[p] = F::template group<Begin>(w[p * panel_units], b);
    UNISONO_UNROLL for (int r = 0; r < MR; r++) {
      const int32_t four = four_values<F, Begin>(x[r * row_blocks]);
      UNISONO_UNROLL for (int p = 0; p < NP; p++) sums[r][p] = dot<F::bits>(sums[r][p], bytes[p], four);
    }
    dots<F, MR, NP, Begin + 1, End>(sums, w, panel_units, b, x, row_blocks);
  }
}

// The same of all 8 groups, summed in 16 bits first.
template <class F, int MR, int NP, int G>
UNISONO_INLINE void short_dots(Shorts (&sums)[MR][NP], const typename F::Unit* w, size_t panel_units, int b, const QuantBlock* x,
                               int64_t row_blocks) {
  if constexpr (G < 8) {
    UNISONO_UNROLL for (int p = 0; p < NP; p++) {
      const Bytes bytes = F::template group<G>(w[p * panel_units], b);
      UNISONO_UNROLL for (int r = 0; r < MR; r++) sums[r][p] = short_dot(sums[r][p], bytes, four_values<F, G>(x[r * row_blocks]));
    }
    short_dots<F, MR, NP, G + 1>(sums, w, panel_units, b, x, row_blocks);
  }
}

// One block's exact integer dots.
template <class F, int MR, int NP>
UNISONO_INLINE void block_dots(Ints (&sums)[MR][NP], const typename F::Unit* w, size_t panel_units, int b, const QuantBlock* x,
                               int64_t row_blocks) {
  if constexpr (!F::half_scales) {
    UNISONO_UNROLL for (int r = 0; r < MR; r++) {
      const Ints from = start<F>(x[r * row_blocks].minus_sum);
      UNISONO_UNROLL for (int p = 0; p < NP; p++) sums[r][p] = from;
    }
    if constexpr (kShortSums && F::bits == 4) {
      Shorts pairs[MR][NP];
      UNISONO_UNROLL for (int r = 0; r < MR; r++)
        UNISONO_UNROLL for (int p = 0; p < NP; p++) pairs[r][p] = zero_shorts();
      short_dots<F, MR, NP, 0>(pairs, w, panel_units, b, x, row_blocks);
      UNISONO_UNROLL for (int r = 0; r < MR; r++)
        UNISONO_UNROLL for (int p = 0; p < NP; p++) sums[r][p] = sum_pairs(sums[r][p], pairs[r][p]);
    } else {
      dots<F, MR, NP, 0, 8>(sums, w, panel_units, b, x, row_blocks);
    }
  } else {
    Ints half[MR][NP];
    UNISONO_UNROLL for (int r = 0; r < MR; r++) {
      const QuantBlock& a = x[r * row_blocks];
      UNISONO_UNROLL for (int p = 0; p < NP; p++) sums[r][p] = start<F>(a.minus_sum_low);
    }
    dots<F, MR, NP, 0, 4>(sums, w, panel_units, b, x, row_blocks);
    UNISONO_UNROLL for (int r = 0; r < MR; r++) {
      const QuantBlock& a = x[r * row_blocks];
      UNISONO_UNROLL for (int p = 0; p < NP; p++) half[r][p] = start<F>(a.minus_sum - a.minus_sum_low);
    }
    dots<F, MR, NP, 4, 8>(half, w, panel_units, b, x, row_blocks);
    UNISONO_UNROLL for (int p = 0; p < NP; p++) {
      const Ints s0 = F::half_scale(w[p * panel_units], b, 0), s1 = F::half_scale(w[p * panel_units], b, 1);
      UNISONO_UNROLL for (int r = 0; r < MR; r++) sums[r][p] = add(mul(sums[r][p], s0), mul(half[r][p], s1));
    }
  }
}

template <class F, int MR, int NP>
UNISONO_INLINE void tile(const typename F::Unit* w, size_t panel_units, const QuantBlock* x, int64_t row_blocks, float* y,
                         int64_t ldy, Fetch ahead) {
  Vec f[MR][NP];
  UNISONO_UNROLL for (int r = 0; r < MR; r++)
    UNISONO_UNROLL for (int p = 0; p < NP; p++) f[r][p] = zero();
  for (int64_t block = 0; block < row_blocks; w++) {
    const int here = row_blocks - block < F::blocks ? static_cast<int>(row_blocks - block) : F::blocks;
    for (int b = 0; b < here; b++, block++, x++) {
      ahead.step();
      Ints sums[MR][NP];
      block_dots<F, MR, NP>(sums, w, panel_units, b, x, row_blocks);
      Vec d[NP], m[NP];
      UNISONO_UNROLL for (int p = 0; p < NP; p++) {
        d[p] = F::scale(w[p * panel_units], b);
        if constexpr (F::has_min) m[p] = F::min(w[p * panel_units], b);
      }
      UNISONO_UNROLL for (int r = 0; r < MR; r++) {
        const QuantBlock& a = x[r * row_blocks];
        const Vec s = set(a.scale);
        [[maybe_unused]] Vec t;
        if constexpr (F::has_min) t = set(a.scale * static_cast<float>(-a.minus_sum));
        UNISONO_UNROLL for (int p = 0; p < NP; p++) {
          f[r][p] = fma(to_floats(sums[r][p]), mul(d[p], s), f[r][p]);
          if constexpr (F::has_min) f[r][p] = fma(m[p], t, f[r][p]);
        }
      }
    }
  }
  UNISONO_UNROLL for (int r = 0; r < MR; r++)
    UNISONO_UNROLL for (int p = 0; p < NP; p++) store(y + r * ldy + 16 * p, f[r][p]);
}

// tile() for 1 to MR rows.
template <class F, int MR, int NP>
void tile_of(int rows, const typename F::Unit* w, size_t panel_units, const QuantBlock* x, int64_t row_blocks, float* y,
             int64_t ldy, Fetch ahead) {
  if constexpr (MR > 1) {
    if (rows < MR) return tile_of<F, MR - 1, NP>(rows, w, panel_units, x, row_blocks, y, ldy, ahead);
  }
  tile<F, MR, NP>(w, panel_units, x, row_blocks, y, ldy, ahead);
}

template <class F>
void product(const PanelMatrix& w, const QuantBlock* x, int rows, float* y, int64_t ldy, int begin, int end, Upcoming then) {
  using Unit = typename F::Unit;
  const int64_t row_blocks = (w.k + kBlock - 1) / kBlock;
  const size_t panel_units = w.panel_bytes / sizeof(Unit);
  const Unit* weights = reinterpret_cast<const Unit*>(w.data);
  const int64_t fit = kActivationBytes / (row_blocks * static_cast<int64_t>(sizeof(QuantBlock)));
  const int at_once = fit < 60 ? 60 : static_cast<int>(lesser(static_cast<int>(fit), 1 << 20));
  for (int r0 = 0; r0 < rows; r0 += at_once) {
    const int some = lesser(at_once, rows - r0);
    for (int p = begin; p < end; p += kTilePanels) {
      const int np = lesser(kTilePanels, end - p);
      Ahead ahead(w, p, np, end, then, pieces_of(some, kTileRows), row_blocks);
      const Unit* at = weights + static_cast<size_t>(p) * panel_units;
      each_piece(some, kTileRows, [&](int first, int n) {
        const int64_t r = r0 + first;
        float* out = y + r * ldy + 16 * p;
        if (np == kTilePanels) {
          tile_of<F, kTileRows, kTilePanels>(n, at, panel_units, x + r * row_blocks, row_blocks, out, ldy, ahead.tile());
        } else {
          tile_of<F, kTileRows, 1>(n, at, panel_units, x + r * row_blocks, row_blocks, out, ldy, ahead.tile());
        }
      });
    }
  }
}

// ---- f32 activations: a stretch of K of the panels is dequantised, then used for all rows.

constexpr int kStretch = 256;  // k dequantised at a time: 16 KiB a panel

template <class F, int G>
UNISONO_INLINE void expand_groups(const typename F::Unit& u, int b, Vec d, Vec m, Vec d1, float* out) {
  if constexpr (G < 8) {
    alignas(64) uint8_t bytes[64];
    const Bytes w = F::template group<G>(u, b);
    __builtin_memcpy(bytes, &w, 64);
    const Vec scale = F::half_scales && G >= 4 ? d1 : d;
    for (int j = 0; j < 4; j++) {
      alignas(64) float q[16];
      for (int lane = 0; lane < 16; lane++) q[lane] = static_cast<float>(bytes[4 * lane + j] - F::zero);
      Vec v = mul(scale, load(q));
      if constexpr (F::has_min) v = add(v, m);
      store(out + 16 * (4 * G + j), v);
    }
    expand_groups<F, G + 1>(u, b, d, m, d1, out);
  }
}

// Blocks [b0, b1) of a panel as f32 [k][16 lanes], each value as GGUF defines it.
template <class F>
void expand(const std::byte* panel, int64_t b0, int64_t b1, float* out) {
  const auto* units = reinterpret_cast<const typename F::Unit*>(panel);
  for (int64_t block = b0; block < b1; block++, out += 16 * kBlock) {
    const auto& u = units[block / F::blocks];
    const int b = static_cast<int>(block % F::blocks);
    Vec d = F::scale(u, b), m = zero(), d1 = d;
    if constexpr (F::has_min) m = F::min(u, b);
    if constexpr (F::half_scales) {
      d1 = mul(d, to_floats(F::half_scale(u, b, 1)));
      d = mul(d, to_floats(F::half_scale(u, b, 0)));
    }
    expand_groups<F, 0>(u, b, d, m, d1, out);
  }
}

using Expand = void (*)(const std::byte* panel, int64_t b0, int64_t b1, float* out);

void expand_f16(const std::byte* panel, int64_t b0, int64_t b1, float* out) {
  const auto* w = reinterpret_cast<const uint16_t*>(panel);
  for (int64_t k = b0 * kBlock; k < b1 * kBlock; k++, out += 16) store(out, load_half(w + 16 * k));
}
void expand_bf16(const std::byte* panel, int64_t b0, int64_t b1, float* out) {
  const auto* w = reinterpret_cast<const uint16_t*>(panel);
  for (int64_t k = b0 * kBlock; k < b1 * kBlock; k++, out += 16) {
    const uint16_t* pairs = w + (k / 4 * 2 + k % 2) * 32 + k % 4 / 2;
    alignas(64) uint16_t lanes[16];
    for (int lane = 0; lane < 16; lane++) lanes[lane] = pairs[2 * lane];
    store(out, load_bf16(lanes));
  }
}

template <int MR, int NP>
UNISONO_INLINE void tile_f32(const float* const (&w)[NP], const float* x, int64_t ldx, int64_t k, float* y, int64_t ldy,
                             bool first, Fetch ahead) {
  Vec f[MR][NP];
  UNISONO_UNROLL for (int r = 0; r < MR; r++)
    UNISONO_UNROLL for (int p = 0; p < NP; p++) f[r][p] = first ? zero() : load(y + r * ldy + 16 * p);
  for (int64_t i = 0; i < k; i++) {
    if (i % kBlock == 0) ahead.step();
    Vec v[NP];
    UNISONO_UNROLL for (int p = 0; p < NP; p++) v[p] = load(w[p] + 16 * i);
    UNISONO_UNROLL for (int r = 0; r < MR; r++) {
      const Vec a = set(x[r * ldx + i]);
      UNISONO_UNROLL for (int p = 0; p < NP; p++) f[r][p] = fma(v[p], a, f[r][p]);
    }
  }
  UNISONO_UNROLL for (int r = 0; r < MR; r++)
    UNISONO_UNROLL for (int p = 0; p < NP; p++) store(y + r * ldy + 16 * p, f[r][p]);
}

template <int MR, int NP>
void tile_f32_of(int rows, const float* const (&w)[NP], const float* x, int64_t ldx, int64_t k, float* y, int64_t ldy,
                 bool first, Fetch ahead) {
  if constexpr (MR > 1) {
    if (rows < MR) return tile_f32_of<MR - 1, NP>(rows, w, x, ldx, k, y, ldy, first, ahead);
  }
  tile_f32<MR, NP>(w, x, ldx, k, y, ldy, first, ahead);
}

// NP panels from p, all rows. expand: null for panels that are f32 already.
template <int NP>
void panels_f32(const PanelMatrix& w, Expand expand, int p, const float* x, int64_t ldx, int rows, float* y, int64_t ldy, int end,
                Upcoming then) {
  Ahead ahead(w, p, NP, end, then, (rows + kTileRowsF32 - 1) / kTileRowsF32 * ((w.k + kStretch - 1) / kStretch), kStretch / kBlock);
  alignas(64) float scratch[NP][kStretch * 16];
  for (int64_t k0 = 0; k0 < w.k; k0 += kStretch) {
    const int64_t some = w.k - k0 < kStretch ? w.k - k0 : kStretch;
    const float* at[NP];
    UNISONO_UNROLL for (int j = 0; j < NP; j++) {
      const std::byte* panel = w.data + w.panel_bytes * static_cast<size_t>(p + j);
      if (expand != nullptr) {
        expand(panel, k0 / kBlock, (k0 + some + kBlock - 1) / kBlock, scratch[j]);
        at[j] = scratch[j];
      } else {
        at[j] = reinterpret_cast<const float*>(panel) + 16 * k0;
      }
    }
    for (int r = 0; r < rows; r += kTileRowsF32)
      tile_f32_of<kTileRowsF32, NP>(lesser(kTileRowsF32, rows - r), at, x + r * ldx + k0, ldx, some, y + r * ldy + 16 * p, ldy,
                                    k0 == 0, ahead.tile());
  }
}

Expand expand_for(DType type) {
  if (type == DType::f32) return nullptr;
  if (type == DType::f16) return expand_f16;
  if (type == DType::bf16) return expand_bf16;
  return with_format(type, []<class F>(F) -> Expand { return expand<F>; });
}

}  // namespace

void matmul_int8(const PanelMatrix& w, const QuantBlock* x, int rows, float* y, int64_t ldy, int begin, int end, Upcoming then) {
  with_format(w.type, [&]<class F>(F) { product<F>(w, x, rows, y, ldy, begin, end, then); });
}

void matmul_f32(const PanelMatrix& w, const float* x, int64_t ldx, int rows, float* y, int64_t ldy, int begin, int end, Upcoming then) {
  const Expand expand = expand_for(w.type);
  int p = begin;
  for (; p + kTilePanelsF32 <= end; p += kTilePanelsF32) panels_f32<kTilePanelsF32>(w, expand, p, x, ldx, rows, y, ldy, end, then);
  for (; p < end; p++) panels_f32<1>(w, expand, p, x, ldx, rows, y, ldy, end, then);
}

}  // namespace unisono::kernels::KERNEL_ISA

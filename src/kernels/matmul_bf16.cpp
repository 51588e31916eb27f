// Matrix products with bf16 activations. A panel's integers are exact in bf16, so weights lose nothing; scales are applied
// in f32, block by block. Few rows take the integers as they widen; many rows take a stretch of K that was widened once.
// Compiled once per instruction set.
#include "kernels/ahead.h"
#include "kernels/format.h"
#include "kernels/isa.h"
#include "kernels/pieces.h"
#include "kernels/tile.h"

namespace unisono::kernels::KERNEL_ISA {

namespace {

constexpr int kRows = kTileRowsBf16, kPanels = kTilePanelsBf16;
constexpr int kFewRows = lesser(kRows, 4);
constexpr int kStretch = 8;  // blocks widened at a time: 10 KB a panel, which stay in L1 while the rows pass by

// A block's weights, already widened: what many rows read again and again.
struct Widened {
  alignas(64) uint16_t pairs[16][32];
  alignas(64) float scale[2][16];  // the second for types with two scales in a block
  alignas(64) float min[16];
};

template <class F, int G>
void widen_groups(const typename F::Unit& u, int b, Widened& out) {
  if constexpr (G < 8) {
    Pairs even, odd;
    to_pairs<F::bits, F::zero>(F::template group<G>(u, b), even, odd);
    store_pairs(out.pairs[2 * G], even);
    store_pairs(out.pairs[2 * G + 1], odd);
    widen_groups<F, G + 1>(u, b, out);
  }
}
template <class F>
void widen_block(const typename F::Unit& u, int b, Widened& out) {
  widen_groups<F, 0>(u, b, out);
  Vec d[2];
  block_scales<F>(u, b, d);
  store(out.scale[0], d[0]);
  if constexpr (F::half_scales) store(out.scale[1], d[1]);
  if constexpr (F::has_min) store(out.min, F::min(u, b));
}

// Where a tile finds block b of panel p: as it lies in memory, or widened. A Source gives pairs<G>(p, b, even, odd) of four
// k, scales(p, b, d), min(p, b), and which of these its type has.
template <class F>
struct FromPanels : PanelUnits<F> {
  using Units = PanelUnits<F>;
  using Units::at, Units::unit, Units::Units;
  static constexpr bool has_min = F::has_min, half_scales = F::half_scales;
  template <int G>
  UNISONO_INLINE void pairs(int p, int64_t b, Pairs& even, Pairs& odd) const {
    to_pairs<F::bits, F::zero>(F::template group<G>(unit(p, b), at(b)), even, odd);
  }
  UNISONO_INLINE void scales(int p, int64_t b, Vec (&d)[2]) const { block_scales<F>(unit(p, b), at(b), d); }
  UNISONO_INLINE Vec min(int p, int64_t b) const { return F::min(unit(p, b), at(b)); }
};
template <bool HalfScales, bool HasMin>
struct FromWidened {
  static constexpr bool has_min = HasMin, half_scales = HalfScales;
  const Widened (*at)[kStretch];  // [panel][block]
  template <int G>
  UNISONO_INLINE void pairs(int p, int64_t b, Pairs& even, Pairs& odd) const {
    even = load_pairs(at[p][b].pairs[2 * G]);
    odd = load_pairs(at[p][b].pairs[2 * G + 1]);
  }
  UNISONO_INLINE void scales(int p, int64_t b, Vec (&d)[2]) const {
    d[0] = load(at[p][b].scale[0]);
    if constexpr (HalfScales) d[1] = load(at[p][b].scale[1]);
  }
  UNISONO_INLINE Vec min(int p, int64_t b) const { return load(at[p][b].min); }
};

// Groups Begin .. End - 1 of one block into the sums, MR rows x NP panels.
template <class Source, int MR, int NP, int Begin, int End>
UNISONO_INLINE void dots(Vec (&s)[MR][NP], const Source& w, int64_t b, const Bf16Block* x, int64_t row_blocks) {
  if constexpr (Begin < End) {
    Pairs pairs[2][NP];
    UNISONO_UNROLL for (int p = 0; p < NP; p++) w.template pairs<Begin>(p, b, pairs[0][p], pairs[1][p]);
    UNISONO_UNROLL for (int half = 0; half < 2; half++) UNISONO_UNROLL for (int r = 0; r < MR; r++) {
      const uint32_t two = two_values(x[r * row_blocks].v + 2 * (2 * Begin + half));
      UNISONO_UNROLL for (int p = 0; p < NP; p++) s[r][p] = dot(s[r][p], pairs[half][p], two);
    }
    dots<Source, MR, NP, Begin + 1, End>(s, w, b, x, row_blocks);
  }
}

template <int MR, int NP>
UNISONO_INLINE void add_scaled(Vec (&f)[MR][NP], const Vec (&s)[MR][NP], const Vec (&d)[NP][2], int which) {
  UNISONO_UNROLL for (int r = 0; r < MR; r++) UNISONO_UNROLL for (int p = 0; p < NP; p++) f[r][p] =
      fma(s[r][p], d[p][which], f[r][p]);
}

// `blocks` blocks of integer weights. first: y starts at 0; else it goes on from what it holds.
template <int MR, int NP, class Source>
UNISONO_INLINE void tile(const Source& w, int64_t blocks, const Bf16Block* x, int64_t row_blocks, float* y, int64_t ldy,
                         bool first, Fetch ahead) {
  Vec f[MR][NP];
  load_sums(f, y, ldy, first);
  for (int64_t b = 0; b < blocks; b++, x++) {
    ahead.step();
    Vec s[MR][NP], d[NP][2];
    UNISONO_UNROLL for (int p = 0; p < NP; p++) w.scales(p, b, d[p]);
    clear(s);
    if constexpr (Source::half_scales) {
      dots<Source, MR, NP, 0, 4>(s, w, b, x, row_blocks);
      add_scaled(f, s, d, 0);
      clear(s);
      dots<Source, MR, NP, 4, 8>(s, w, b, x, row_blocks);
      add_scaled(f, s, d, 1);
    } else {
      dots<Source, MR, NP, 0, 8>(s, w, b, x, row_blocks);
      add_scaled(f, s, d, 0);
    }
    if constexpr (Source::has_min) {
      UNISONO_UNROLL for (int p = 0; p < NP; p++) {
        const Vec m = w.min(p, b);
        UNISONO_UNROLL for (int r = 0; r < MR; r++) f[r][p] = fma(m, set(x[r * row_blocks].sum), f[r][p]);
      }
    }
  }
  store_sums(f, y, ldy);
}
template <int MR, int NP, class Source>
void tile_of(int rows, const Source& w, int64_t blocks, const Bf16Block* x, int64_t row_blocks, float* y, int64_t ldy,
             bool first, Fetch ahead) {
  if constexpr (MR > 1) {
    if (rows < MR) return tile_of<MR - 1, NP>(rows, w, blocks, x, row_blocks, y, ldy, first, ahead);
  }
  tile<MR, NP>(w, blocks, x, row_blocks, y, ldy, first, ahead);
}

template <class F, int NP>
void panels_of(const PanelMatrix& w, const Bf16Block* x, int rows, float* y, int64_t ldy, int panel, int end,
               Upcoming then) {
  const int row_blocks = (w.k + kBlock - 1) / kBlock;
  const FromPanels<F> units(w, panel);
  const bool few = rows <= kFewRows;
  const int pieces = few ? 1 : pieces_of(row_blocks, kStretch);
  Ahead ahead(w, panel, NP, end, then, rows, pieces * pieces_of(rows, kRows), (row_blocks + pieces - 1) / pieces);
  y += 16 * panel;
  if (few) return tile_of<kFewRows, NP>(rows, units, row_blocks, x, row_blocks, y, ldy, true, ahead.tile());
  alignas(64) Widened wide[NP][kStretch];
  each_piece(row_blocks, kStretch, [&](int b0, int some) {
    for (int p = 0; p < NP; p++)
      for (int b = b0; b < b0 + some; b++) widen_block<F>(units.unit(p, b), units.at(b), wide[p][b - b0]);
    each_piece(rows, kRows, [&](int r, int n) {
      tile_of<kRows, NP>(n, FromWidened<F::half_scales, F::has_min>{wide}, some, x + int64_t{r} * row_blocks + b0,
                         row_blocks, y + r * ldy, ldy, b0 == 0, ahead.tile());
    });
  });
}

template <class F>
void product(const PanelMatrix& w, const Bf16Block* x, int rows, float* y, int64_t ldy, int begin, int end, Upcoming then) {
  int p = begin;
  for (; p + kPanels <= end; p += kPanels) panels_of<F, kPanels>(w, x, rows, y, ldy, p, end, then);
  for (; p < end; p++) panels_of<F, 1>(w, x, rows, y, ldy, p, end, then);
}

// ---- BF16 weights: pairs as they lie in memory, no scales.

template <int MR, int NP>
UNISONO_INLINE void plain_tile(const uint16_t* w, size_t panel_values, const Bf16Block* x, int64_t row_blocks,
                               int64_t blocks, float* y, int64_t ldy, bool first, Fetch ahead) {
  Vec f[MR][NP];
  load_sums(f, y, ldy, first);
  for (int64_t b = 0; b < blocks; b++, x++, w += 16 * kBlock) {
    ahead.step();
    UNISONO_UNROLL for (int pair = 0; pair < 16; pair++) {
      Pairs at[NP];
      UNISONO_UNROLL for (int p = 0; p < NP; p++) at[p] = load_pairs(w + static_cast<size_t>(p) * panel_values + 32 * pair);
      UNISONO_UNROLL for (int r = 0; r < MR; r++) {
        const uint32_t two = two_values(x[r * row_blocks].v + 2 * pair);
        UNISONO_UNROLL for (int p = 0; p < NP; p++) f[r][p] = dot(f[r][p], at[p], two);
      }
    }
  }
  store_sums(f, y, ldy);
}
template <int MR, int NP>
void plain_tile_of(int rows, const uint16_t* w, size_t panel_values, const Bf16Block* x, int64_t row_blocks, int64_t blocks,
                   float* y, int64_t ldy, bool first, Fetch ahead) {
  if constexpr (MR > 1) {
    if (rows < MR) return plain_tile_of<MR - 1, NP>(rows, w, panel_values, x, row_blocks, blocks, y, ldy, first, ahead);
  }
  plain_tile<MR, NP>(w, panel_values, x, row_blocks, blocks, y, ldy, first, ahead);
}
constexpr int kPlainStretch = 24;  // blocks of two panels: 48 KB

template <int NP>
void plain_panels(const PanelMatrix& w, const Bf16Block* x, int rows, float* y, int64_t ldy, int panel, int end,
                  Upcoming then) {
  const int row_blocks = (w.k + kBlock - 1) / kBlock;
  const size_t panel_values = w.panel_bytes / 2;
  const auto* weights = reinterpret_cast<const uint16_t*>(w.data) + static_cast<size_t>(panel) * panel_values;
  const int stretch = rows <= kRows ? row_blocks : kPlainStretch, pieces = pieces_of(row_blocks, stretch);
  Ahead ahead(w, panel, NP, end, then, rows, pieces * pieces_of(rows, kRows), (row_blocks + pieces - 1) / pieces);
  each_piece(row_blocks, stretch, [&](int b0, int some) {
    each_piece(rows, kRows, [&](int r, int n) {
      plain_tile_of<kRows, NP>(n, weights + b0 * 16 * kBlock, panel_values, x + int64_t{r} * row_blocks + b0, row_blocks,
                               some, y + r * ldy + 16 * panel, ldy, b0 == 0, ahead.tile());
    });
  });
}
void plain_product(const PanelMatrix& w, const Bf16Block* x, int rows, float* y, int64_t ldy, int begin, int end,
                   Upcoming then) {
  int p = begin;
  for (; p + kPanels <= end; p += kPanels) plain_panels<kPanels>(w, x, rows, y, ldy, p, end, then);
  for (; p < end; p++) plain_panels<1>(w, x, rows, y, ldy, p, end, then);
}

}  // namespace

void matmul_bf16(const PanelMatrix& w, const Bf16Block* x, int rows, float* y, int64_t ldy, int begin, int end,
                 Upcoming then) {
  if (w.type == DType::bf16) return plain_product(w, x, rows, y, ldy, begin, end, then);
  with_format(w.type, [&]<class F>(F) { product<F>(w, x, rows, y, ldy, begin, end, then); });
}

}  // namespace unisono::kernels::KERNEL_ISA

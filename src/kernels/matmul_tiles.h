// int8 products of 16 rows and more on tiles. A tile product of one block is 16 rows x 16 lanes of exact int32 sums; they
// become floats and are scaled in the same steps as in matmul.cpp, so the bits are the same. Written on a TileUnit: real or
// a model.
#pragma once

#include "kernels/ahead.h"
#include "kernels/pieces.h"
#include "kernels/tile_unit.h"
#include "kernels/unpacked.h"

namespace unisono::kernels::KERNEL_ISA {

namespace {

// Up to 16 rows that take their sums from a tile. A tile always reads 16 rows: where fewer are left it begins earlier, and
// the rows that are another's are skipped.
struct TileRows {
  TileRows(int at, int rows, int all) : first(lesser(at, all - kTileSide)), skip(at - first), end(skip + rows) {}
  int first, skip, end;
};

// A block's sums, [half][row tile][panel]. Two such, as one is scaled while the next is multiplied.
template <class F, int MT, int NP>
struct BlockSums {
  static constexpr int halves = F::half_scales ? 2 : 1;
  alignas(64) int32_t at[halves][MT][NP][kTileSide][16];
};

template <class F, int G>
void unpack_groups(const typename F::Unit& u, int b, Unpacked& out) {
  if constexpr (G < 8) {
    store_bytes(out.groups[G], F::template group<G>(u, b));
    if constexpr (F::zero != 0)
      for (uint8_t& w : out.groups[G]) w = static_cast<uint8_t>(w - F::zero);
    unpack_groups<F, G + 1>(u, b, out);
  }
}
// The weights as signed bytes, so that products need no correction: w - zero.
template <class F>
void unpack_signed(const typename F::Unit& u, int b, Unpacked& out) {
  unpack_groups<F, 0>(u, b, out);
  Vec d[2];
  block_scales<F>(u, b, d);
  store_scales<F>(d, out);
  if constexpr (F::has_min) store(out.min, F::min(u, b));
}

template <int Sum, int X, int W, class Unit>
UNISONO_INLINE void tile_product(Unit& unit, int32_t (&out)[kTileSide][16]) {
  unit.template clear<Sum>();
  unit.template multiply<Sum, X, W>();
  unit.template store<Sum>(&out[0][0], sizeof out[0]);
}

// Block b of the panels times block b of the rows.
template <class F, int MT, int NP, class Unit>
UNISONO_INLINE void multiply_block(Unit& unit, const Unpacked (*w)[kUnpacked], int b, const TileRows (&tiles)[MT],
                                   const QuantBlock* x, int64_t row_blocks, BlockSums<F, MT, NP>& out) {
  constexpr int groups = 8 / BlockSums<F, MT, NP>::halves;
  const auto stride = static_cast<ptrdiff_t>(row_blocks * static_cast<int64_t>(sizeof(QuantBlock)));
  for (int h = 0; h < BlockSums<F, MT, NP>::halves; h++) {
    unit.template load<6>(w[0][b].groups[groups * h], 64);
    if constexpr (NP > 1) unit.template load<7>(w[1][b].groups[groups * h], 64);
    unit.template load<4>(x[tiles[0].first * row_blocks + b].q + 4 * groups * h, stride);
    if constexpr (MT > 1) unit.template load<5>(x[tiles[1].first * row_blocks + b].q + 4 * groups * h, stride);
    tile_product<0, 4, 6>(unit, out.at[h][0][0]);
    if constexpr (NP > 1) tile_product<1, 4, 7>(unit, out.at[h][0][1]);
    if constexpr (MT > 1) tile_product<2, 5, 6>(unit, out.at[h][1][0]);
    if constexpr (MT > 1 && NP > 1) tile_product<3, 5, 7>(unit, out.at[h][1][1]);
  }
}

// The rows' results so far, apart from y: there, rows a power of two apart would push one another out of L1.
template <int MT, int NP>
struct Results {
  alignas(64) float at[MT][kTileSide][NP][16];
};

// Adds block b's sums, scaled.
template <class F, int MT, int NP>
UNISONO_INLINE void scale_block(const BlockSums<F, MT, NP>& sums, const Unpacked (*w)[kUnpacked], int b,
                                const TileRows (&tiles)[MT], const QuantBlock* x, int64_t row_blocks,
                                Results<MT, NP>& out) {
  Vec d[NP][2], m[NP];
  UNISONO_UNROLL for (int p = 0; p < NP; p++) {
    const Unpacked& u = w[p][b];
    unpacked_scales<F>(u, d[p]);
    if constexpr (F::has_min) m[p] = load(u.min);
  }
  for (int t = 0; t < MT; t++)
    for (int r = tiles[t].skip; r < tiles[t].end; r++) {
      const QuantBlock& a = x[(tiles[t].first + r) * row_blocks + b];
      const Vec s = set(a.scale);
      [[maybe_unused]] Vec minus;
      if constexpr (F::has_min) minus = set(a.scaled_sum);
      UNISONO_UNROLL for (int p = 0; p < NP; p++) {
        Vec sum = to_floats(load_ints(sums.at[0][t][p][r]));
        if constexpr (F::half_scales)
          sum = fma(to_floats(load_ints(sums.at[1][t][p][r])), d[p][1], mul(sum, d[p][0]));
        Vec f = fma(sum, F::half_scales ? s : mul(d[p][0], s), load(out.at[t][r][p]));
        if constexpr (F::has_min) f = fma(m[p], minus, f);
        store(out.at[t][r][p], f);
      }
    }
}

// visit(result, where it lies in y) for each row and panel.
template <int MT, int NP, class Visit>
UNISONO_INLINE void each_result(const TileRows (&tiles)[MT], Results<MT, NP>& results, float* y, int64_t ldy, Visit visit) {
  for (int t = 0; t < MT; t++)
    for (int r = tiles[t].skip; r < tiles[t].end; r++)
      UNISONO_UNROLL for (int p = 0; p < NP; p++) visit(results.at[t][r][p], y + (tiles[t].first + r) * ldy + 16 * p);
}

// `blocks` unpacked blocks of NP panels, for MT tiles of rows. first: y starts at 0; else it goes on from what it holds.
template <class F, int MT, int NP, class Unit>
void tiles_of(Unit& unit, const Unpacked (*w)[kUnpacked], int blocks, const TileRows (&tiles)[MT], const QuantBlock* x,
              int64_t row_blocks, float* y, int64_t ldy, bool first, Fetch ahead) {
  Results<MT, NP> results;
  each_result(tiles, results, y, ldy,
              [&](float* result, const float* from) { store(result, first ? zero() : load(from)); });
  BlockSums<F, MT, NP> sums[2];
  for (int b = 0; b <= blocks; b++) {
    ahead.step();
    if (b < blocks) multiply_block<F, MT, NP>(unit, w, b, tiles, x, row_blocks, sums[b % 2]);
    if (b > 0) scale_block<F, MT, NP>(sums[(b - 1) % 2], w, b - 1, tiles, x, row_blocks, results);
  }
  each_result(tiles, results, y, ldy, [&](const float* result, float* to) { store(to, load(result)); });
}

// NP panels from `panel`, all rows.
template <class F, int NP, class Unit>
void tile_panels(Unit& unit, const PanelMatrix& w, const QuantBlock* x, int rows, float* y, int64_t ldy, int panel, int end,
                 Upcoming then) {
  const int row_blocks = (w.k + kBlock - 1) / kBlock, stretches = pieces_of(row_blocks, kUnpacked);
  const PanelUnits<F> at(w, panel);
  Ahead ahead(w, panel, NP, end, then, rows, stretches * pieces_of(rows, 2 * kTileSide),
              (row_blocks + stretches - 1) / stretches + 1);
  y += 16 * panel;
  Unpacked unpacked[NP][kUnpacked];
  each_piece(row_blocks, kUnpacked, [&](int b0, int some) {
    for (int p = 0; p < NP; p++)
      for (int b = 0; b < some; b++) unpack_signed<F>(at.unit(p, b0 + b), at.at(b0 + b), unpacked[p][b]);
    each_piece(rows, 2 * kTileSide, [&](int r, int n) {
      if (n > kTileSide) {
        const TileRows two[] = {{r, kTileSide, rows}, {r + kTileSide, n - kTileSide, rows}};
        tiles_of<F, 2, NP>(unit, unpacked, some, two, x + b0, row_blocks, y, ldy, b0 == 0, ahead.tile());
      } else {
        const TileRows one[] = {{r, n, rows}};
        tiles_of<F, 1, NP>(unit, unpacked, some, one, x + b0, row_blocks, y, ldy, b0 == 0, ahead.tile());
      }
    });
  });
}

// matmul_int8() for 16 rows and more.
template <TileUnit Unit>
void matmul_tiles(Unit& unit, const PanelMatrix& w, const QuantBlock* x, int rows, float* y, int64_t ldy, int begin,
                  int end, Upcoming then) {
  const int64_t row_blocks = (w.k + kBlock - 1) / kBlock;
  with_format(w.type, [&]<class F>(F) {
    unit.configure(tile_config(F::half_scales ? kBlock / 2 : kBlock));
    each_piece(rows, rows_in_cache(row_blocks), [&](int r, int some) {
      const QuantBlock* in = x + r * row_blocks;
      float* out = y + r * ldy;
      int p = begin;
      for (; p + 2 <= end; p += 2) tile_panels<F, 2>(unit, w, in, some, out, ldy, p, end, then);
      for (; p < end; p++) tile_panels<F, 1>(unit, w, in, some, out, ldy, p, end, then);
    });
    unit.release();
  });
}

}  // namespace

}  // namespace unisono::kernels::KERNEL_ISA

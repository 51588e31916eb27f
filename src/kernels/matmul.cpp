// Matrix products over panels. A lane of a panel is an output; its sum runs over K in order, whatever the tile, so that
// tiles, rows and panels can be dealt out freely. Compiled once per instruction set.
#include "kernels/ahead.h"
#include "kernels/format.h"
#include "kernels/isa.h"
#include "kernels/pieces.h"
#include "kernels/tile.h"
#include "kernels/unpacked.h"

namespace unisono::kernels::KERNEL_ISA {

namespace {

// Whether so many rows pay for unpacking weights once for all. Unsigned bytes lie there as they are used. Four bits are as
// fast to unpack as to load, so they do only where it costs next to nothing.
template <class F>
constexpr bool pay_unpacking(int rows) {
  if constexpr (F::bits == 8 && kBytesAreUnsigned) return false;
  return rows >= (F::bits == 4 && F::blocks == 2 ? kUnpacks4BitsFrom : 16);
}
// So few rows take no longer than memory does, which then gives panels fastest one after the other. But with panels of middling
// size a tile's successor is as much on its way as is best, and a stream would have less.
constexpr int kStreamRows = 2;
constexpr size_t kStreamedPanel = 12 << 10, kStreamedTile = 8 << 10;  // a panel from here on; a tile below

// Where a tile finds block b of panel p: as it lies in memory, or unpacked.
template <class F>
struct FromPanels : PanelUnits<F> {
  using Units = PanelUnits<F>;
  using Units::at, Units::unit, Units::Units;
  template <int G>
  UNISONO_INLINE auto group(int p, int64_t b) const {
    return operand<F::bits>(F::template group<G>(unit(p, b), at(b)));
  }
  UNISONO_INLINE void scales(int p, int64_t b, Vec (&d)[2]) const { block_scales<F>(unit(p, b), at(b), d); }
  UNISONO_INLINE Vec min(int p, int64_t b) const { return F::min(unit(p, b), at(b)); }
};
// The same, and what it gives is left there for the rows that come after: blocks from b0 on.
template <class F>
struct Unpacking {
  FromPanels<F> from;
  int64_t b0;
  Unpacked (*panels)[kUnpacked];
  template <int G>
  UNISONO_INLINE auto group(int p, int64_t b) const {
    const auto bytes = from.template group<G>(p, b0 + b);
    store_operand(panels[p][b].groups[G], bytes);
    return bytes;
  }
  UNISONO_INLINE void scales(int p, int64_t b, Vec (&d)[2]) const {
    from.scales(p, b0 + b, d);
    store_scales<F>(d, panels[p][b]);
  }
  UNISONO_INLINE Vec min(int p, int64_t b) const {
    const Vec m = from.min(p, b0 + b);
    store(panels[p][b].min, m);
    return m;
  }
};
template <class F>
struct FromUnpacked {
  const Unpacked (*panels)[kUnpacked];
  template <int G>
  UNISONO_INLINE auto group(int p, int64_t b) const {
    return load_operand<F::bits>(panels[p][b].groups[G]);
  }
  UNISONO_INLINE void scales(int p, int64_t b, Vec (&d)[2]) const { unpacked_scales<F>(panels[p][b], d); }
  UNISONO_INLINE Vec min(int p, int64_t b) const { return load(panels[p][b].min); }
};

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
template <int MR, int NP, int Begin, int End, class Sums, class Source>
UNISONO_INLINE void add_dots(Sums (&sums)[MR][NP], const Source& w, int64_t b, const QuantBlock* x, int64_t row_blocks) {
  if constexpr (Begin < End) {
    decltype(w.template group<Begin>(0, b)) weights[NP];
    UNISONO_UNROLL for (int p = 0; p < NP; p++) weights[p] = w.template group<Begin>(p, b);
    UNISONO_UNROLL for (int r = 0; r < MR; r++) {
      const int32_t four = four_values(x[r * row_blocks].q + 4 * Begin);
      UNISONO_UNROLL for (int p = 0; p < NP; p++) sums[r][p] = dot(sums[r][p], weights[p], four);
    }
    add_dots<MR, NP, Begin + 1, End>(sums, w, b, x, row_blocks);
  }
}

// The same, summed in 16 bits first where the instruction set has a use for it.
template <class F, int MR, int NP, int Begin, int End, class Source>
UNISONO_INLINE void dots(Ints (&sums)[MR][NP], const Source& w, int64_t b, const QuantBlock* x, int64_t row_blocks) {
  if constexpr (kShortGroups<F::bits> < 2) {
    add_dots<MR, NP, Begin, End>(sums, w, b, x, row_blocks);
  } else if constexpr (Begin < End) {
    constexpr int next = lesser(Begin + kShortGroups<F::bits>, End);
    Shorts pairs[MR][NP];
    UNISONO_UNROLL for (int r = 0; r < MR; r++) UNISONO_UNROLL for (int p = 0; p < NP; p++) pairs[r][p] = zero_shorts();
    add_dots<MR, NP, Begin, next>(pairs, w, b, x, row_blocks);
    UNISONO_UNROLL for (int r = 0; r < MR; r++) UNISONO_UNROLL for (int p = 0; p < NP; p++) sums[r][p] =
        sum_pairs(sums[r][p], pairs[r][p]);
    dots<F, MR, NP, next, End>(sums, w, b, x, row_blocks);
  }
}

// One block's exact integer dots as floats; those of a block with two scales scaled by them.
template <class F, int MR, int NP, class Source>
UNISONO_INLINE void block_dots(Vec (&out)[MR][NP], const Source& w, int64_t b, const QuantBlock* x, int64_t row_blocks) {
  Ints sums[MR][NP];
  if constexpr (!F::half_scales) {
    UNISONO_UNROLL for (int r = 0; r < MR; r++) {
      const Ints from = start<F>(x[r * row_blocks].minus_sum);
      UNISONO_UNROLL for (int p = 0; p < NP; p++) sums[r][p] = from;
    }
    dots<F, MR, NP, 0, 8>(sums, w, b, x, row_blocks);
    UNISONO_UNROLL for (int r = 0; r < MR; r++) UNISONO_UNROLL for (int p = 0; p < NP; p++) out[r][p] =
        to_floats(sums[r][p]);
  } else {
    UNISONO_UNROLL for (int r = 0; r < MR; r++) UNISONO_UNROLL for (int p = 0; p < NP; p++) sums[r][p] =
        start<F>(x[r * row_blocks].minus_sum_low);
    dots<F, MR, NP, 0, 4>(sums, w, b, x, row_blocks);
    Vec d[NP][2];
    UNISONO_UNROLL for (int p = 0; p < NP; p++) w.scales(p, b, d[p]);
    UNISONO_UNROLL for (int r = 0; r < MR; r++) UNISONO_UNROLL for (int p = 0; p < NP; p++) out[r][p] =
        mul(to_floats(sums[r][p]), d[p][0]);
    UNISONO_UNROLL for (int r = 0; r < MR; r++) {
      const QuantBlock& a = x[r * row_blocks];
      UNISONO_UNROLL for (int p = 0; p < NP; p++) sums[r][p] = start<F>(a.minus_sum - a.minus_sum_low);
    }
    dots<F, MR, NP, 4, 8>(sums, w, b, x, row_blocks);
    UNISONO_UNROLL for (int r = 0; r < MR; r++) UNISONO_UNROLL for (int p = 0; p < NP; p++) out[r][p] =
        fma(to_floats(sums[r][p]), d[p][1], out[r][p]);
  }
}

// `blocks` blocks of MR rows x NP panels. first: y starts at 0; else it goes on from what it holds.
template <class F, int MR, int NP, class Source, class Fetching>
UNISONO_INLINE void tile(const Source& w, int64_t blocks, const QuantBlock* x, int64_t row_blocks, float* y, int64_t ldy,
                         bool first, Fetching ahead) {
  Vec f[MR][NP];
  load_sums(f, y, ldy, first);
  for (int64_t b = 0; b < blocks; b++, x++) {
    ahead.step();
    Vec sums[MR][NP];
    block_dots<F, MR, NP>(sums, w, b, x, row_blocks);
    Vec d[NP][2], m[NP];
    UNISONO_UNROLL for (int p = 0; p < NP; p++) {
      if constexpr (!F::half_scales) w.scales(p, b, d[p]);
      if constexpr (F::has_min) m[p] = w.min(p, b);
    }
    UNISONO_UNROLL for (int r = 0; r < MR; r++) {
      const QuantBlock& a = x[r * row_blocks];
      const Vec s = set(a.scale);
      [[maybe_unused]] Vec t;
      if constexpr (F::has_min) t = set(a.scaled_sum);
      UNISONO_UNROLL for (int p = 0; p < NP; p++) {
        if constexpr (F::half_scales) {
          f[r][p] = fma(sums[r][p], s, f[r][p]);
        } else {
          f[r][p] = fma(sums[r][p], mul(d[p][0], s), f[r][p]);
        }
        if constexpr (F::has_min) f[r][p] = fma(m[p], t, f[r][p]);
      }
    }
  }
  store_sums(f, y, ldy);
}

// tile() for 1 to MR rows.
template <class F, int MR, int NP, class Source, class Fetching>
void tile_of(int rows, const Source& w, int64_t blocks, const QuantBlock* x, int64_t row_blocks, float* y, int64_t ldy,
             bool first, Fetching ahead) {
  if constexpr (MR > 1) {
    if (rows < MR) return tile_of<F, MR - 1, NP>(rows, w, blocks, x, row_blocks, y, ldy, first, ahead);
  }
  tile<F, MR, NP>(w, blocks, x, row_blocks, y, ldy, first, ahead);
}

// NP panels from `panel`, all rows.
template <class F, int NP>
void panels_of(const PanelMatrix& w, const QuantBlock* x, int rows, float* y, int64_t ldy, int panel, int end,
               Upcoming then) {
  const int row_blocks = (w.k + kBlock - 1) / kBlock;
  const FromPanels<F> at(w, panel);
  const bool unpacks = pay_unpacking<F>(rows);
  const int stretches = unpacks ? pieces_of(row_blocks, kUnpacked) : 1;
  Ahead ahead(w, panel, NP, end, then, rows, stretches * pieces_of(rows, kTileRows), pieces_of(row_blocks, stretches));
  y += 16 * panel;
  if (!unpacks) {
    each_piece(rows, kTileRows, [&](int r, int n) {
      tile_of<F, kTileRows, NP>(n, at, row_blocks, x + int64_t{r} * row_blocks, row_blocks, y + r * ldy, ldy, true,
                                ahead.tile());
    });
    return;
  }
  Unpacked unpacked[NP][kUnpacked];
  each_piece(row_blocks, kUnpacked, [&](int b0, int some) {
    const auto multiply = [&](const auto& source, int r, int n) {
      tile_of<F, kTileRows, NP>(n, source, some, x + int64_t{r} * row_blocks + b0, row_blocks, y + r * ldy, ldy, b0 == 0,
                                ahead.tile());
    };
    each_piece(rows, kTileRows, [&](int r, int n) {
      if (r == 0) {  // masks and shifts use ports that dots leave
        multiply(Unpacking<F>{at, b0, unpacked}, r, n);
      } else {
        multiply(FromUnpacked<F>{unpacked}, r, n);
      }
    });
  });
}

// Panel after panel, for at most kStreamRows rows.
template <class F>
void stream(const PanelMatrix& w, const QuantBlock* x, int rows, float* y, int64_t ldy, int begin, int end, Upcoming then) {
  const int row_blocks = (w.k + kBlock - 1) / kBlock;
  StreamAhead ahead(w, begin, end, then, row_blocks);
  for (int p = begin; p < end; p++)
    tile_of<F, kStreamRows, 1>(rows, FromPanels<F>(w, p), row_blocks, x, row_blocks, y + 16 * p, ldy, true, ahead.panel());
}

template <class F>
void product(const PanelMatrix& w, const QuantBlock* x, int rows, float* y, int64_t ldy, int begin, int end,
             Upcoming then) {
  if (rows <= kStreamRows && (w.panel_bytes >= kStreamedPanel || kTilePanels * w.panel_bytes < kStreamedTile))
    return stream<F>(w, x, rows, y, ldy, begin, end, then);
  const int64_t row_blocks = (w.k + kBlock - 1) / kBlock;
  each_piece(rows, rows_in_cache(row_blocks), [&](int r, int some) {
    const QuantBlock* in = x + r * row_blocks;
    float* out = y + r * ldy;
    int p = begin;
    for (; p + kTilePanels <= end; p += kTilePanels) panels_of<F, kTilePanels>(w, in, some, out, ldy, p, end, then);
    for (; p < end; p++) panels_of<F, 1>(w, in, some, out, ldy, p, end, then);
  });
}

// ---- f32 activations: a stretch of K of the panels is dequantised, then used for all rows.

constexpr int kStretch = 256;  // k dequantised at a time: 16 KiB a panel

template <class F, int G>
UNISONO_INLINE void expand_groups(const typename F::Unit& u, int b, const Vec (&d)[2], Vec m, float* out) {
  if constexpr (G < 8) {
    alignas(64) uint8_t bytes[64];
    const Bytes w = F::template group<G>(u, b);
    __builtin_memcpy(bytes, &w, 64);
    const Vec scale = d[F::half_scales && G >= 4 ? 1 : 0];
    for (int j = 0; j < 4; j++) {
      alignas(64) float q[16];
      for (int lane = 0; lane < 16; lane++) q[lane] = static_cast<float>(bytes[4 * lane + j] - F::zero);
      Vec v = mul(scale, load(q));
      if constexpr (F::has_min) v = add(v, m);
      store(out + 16 * (4 * G + j), v);
    }
    expand_groups<F, G + 1>(u, b, d, m, out);
  }
}

// Blocks [b0, b1) of a panel as f32 [k][16 lanes], each value as GGUF defines it.
template <class F>
void expand(const std::byte* panel, int64_t b0, int64_t b1, float* out) {
  const auto* units = reinterpret_cast<const typename F::Unit*>(panel);
  for (int64_t block = b0; block < b1; block++, out += 16 * kBlock) {
    const auto& u = units[block / F::blocks];
    const int b = static_cast<int>(block % F::blocks);
    Vec d[2], m = zero();
    block_scales<F>(u, b, d);
    if constexpr (F::has_min) m = F::min(u, b);
    expand_groups<F, 0>(u, b, d, m, out);
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
  load_sums(f, y, ldy, first);
  for (int64_t i = 0; i < k; i++) {
    if (i % kBlock == 0) ahead.step();
    Vec v[NP];
    UNISONO_UNROLL for (int p = 0; p < NP; p++) v[p] = load(w[p] + 16 * i);
    UNISONO_UNROLL for (int r = 0; r < MR; r++) {
      const Vec a = set(x[r * ldx + i]);
      UNISONO_UNROLL for (int p = 0; p < NP; p++) f[r][p] = fma(v[p], a, f[r][p]);
    }
  }
  store_sums(f, y, ldy);
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
void panels_f32(const PanelMatrix& w, Expand expand, int p, const float* x, int64_t ldx, int rows, float* y, int64_t ldy,
                int end, Upcoming then) {
  Ahead ahead(w, p, NP, end, then, rows, pieces_of(rows, kTileRowsF32) * pieces_of(w.k, kStretch), kStretch / kBlock);
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
      tile_f32_of<kTileRowsF32, NP>(lesser(kTileRowsF32, rows - r), at, x + r * ldx + k0, ldx, some, y + r * ldy + 16 * p,
                                    ldy, k0 == 0, ahead.tile());
  }
}

Expand expand_for(DType type) {
  if (type == DType::f32) return nullptr;
  if (type == DType::f16) return expand_f16;
  if (type == DType::bf16) return expand_bf16;
  return with_format(type, []<class F>(F) -> Expand { return expand<F>; });
}

}  // namespace

void matmul_int8(const PanelMatrix& w, const QuantBlock* x, int rows, float* y, int64_t ldy, int begin, int end,
                 Upcoming then) {
  with_format(w.type, [&]<class F>(F) { product<F>(w, x, rows, y, ldy, begin, end, then); });
}

void matmul_f32(const PanelMatrix& w, const float* x, int64_t ldx, int rows, float* y, int64_t ldy, int begin, int end,
                Upcoming then) {
  const Expand expand = expand_for(w.type);
  int p = begin;
  for (; p + kTilePanelsF32 <= end; p += kTilePanelsF32)
    panels_f32<kTilePanelsF32>(w, expand, p, x, ldx, rows, y, ldy, end, then);
  for (; p < end; p++) panels_f32<1>(w, expand, p, x, ldx, rows, y, ldy, end, then);
}

}  // namespace unisono::kernels::KERNEL_ISA

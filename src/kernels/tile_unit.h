// The tiles of Intel's AMX as the products use them: 8 registers of up to 16 rows of 64 bytes, and one instruction that
// multiplies two of them into a third. Plain data, no code: matmul_tiles.h is written on it, matmul_amx.cpp has the
// instructions, and the tests have a model of them.
#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>

namespace unisono::kernels {

inline constexpr int kTileSide = 16;  // rows of a tile, and its int32 columns

// The shapes of the 8 tiles as `ldtilecfg` reads them (Intel's manual, volume 1, section 18.3).
struct alignas(64) TileConfig {
  uint8_t palette = 1;
  uint8_t start_row = 0;
  uint8_t unused[14] = {};
  uint16_t row_bytes[16] = {};
  uint8_t rows[16] = {};
};
static_assert(sizeof(TileConfig) == 64);

// Tiles 0 to 3 for sums [16 rows][16 lanes] of int32, 4 and 5 for activations [16 rows][depth] of int8, 6 and 7 for weights
// [depth / 4][16 lanes][4] of int8.
constexpr TileConfig tile_config(int depth) {
  TileConfig c;
  for (int t = 0; t < 8; t++) {
    c.rows[t] = static_cast<uint8_t>(t < 6 ? kTileSide : depth / 4);
    c.row_bytes[t] = static_cast<uint16_t>(t == 4 || t == 5 ? depth : 64);
  }
  return c;
}

// What such a unit does. Each thread has tiles of its own: configure() comes first, and release() gives them back.
template <class Unit>
concept TileUnit = requires(Unit unit, const TileConfig& config, const void* from, int32_t* to, ptrdiff_t stride) {
  {unit.configure(config)};
  {unit.release()};
  {unit.template clear<0>()};
  {unit.template load<4>(from, stride)};  // the tile's rows, stride bytes apart
  {unit.template multiply<0, 4, 6>()};    // tile 0 += tile 4 times tile 6: signed bytes into int32
  {unit.template store<0>(to, stride)};
};

}  // namespace unisono::kernels

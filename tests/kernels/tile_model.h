// Intel's tile instructions in plain C++, after the operations in the Software Developer's Manual, volume 2. What the
// processor would answer with a fault, ends the program here.
#pragma once

#include <array>
#include <cstdint>
#include <cstring>

#include "base/check.h"
#include "kernels/panel.h"
#include "kernels/tile_unit.h"

namespace unisono::kernels {

// One thread's tiles.
class TileModel {
 public:
  bool configured() const { return config_.palette != 0; }
  int64_t instructions() const { return instructions_; }  // so far

  void ldtilecfg(const TileConfig& config) {
    instructions_++;
    for (uint8_t byte : config.unused) check(byte == 0, "ldtilecfg: reserved bytes are 0");
    check(config.palette <= 1 && config.start_row == 0, "ldtilecfg: palette 0 or 1, from row 0");
    for (size_t t = 0; t < 16; t++) {
      const int rows = config.rows[t], bytes = config.row_bytes[t];
      check(t < 8 || (rows == 0 && bytes == 0), "ldtilecfg: there are 8 tiles");
      check(rows <= 16 && bytes <= 64 && (rows == 0) == (bytes == 0), "ldtilecfg: 16 rows of 64 bytes at most");
    }
    config_ = config;
    tiles_ = {};
  }
  void tilerelease() {
    instructions_++;
    config_ = none();
    tiles_ = {};
  }
  void tilezero(int t) { at(t) = {}; }
  void tileloadd(int t, const void* from, ptrdiff_t stride) {
    Tile& tile = at(t) = {};
    for (int r = 0; r < rows(t); r++) std::memcpy(tile[static_cast<size_t>(r)].data(), row(from, r, stride), bytes(t));
  }
  void tilestored(int t, void* to, ptrdiff_t stride) {
    const Tile& tile = at(t);
    for (int r = 0; r < rows(t); r++)
      std::memcpy(const_cast<std::byte*>(row(to, r, stride)), tile[static_cast<size_t>(r)].data(), bytes(t));
  }
  // c[m][n] += the sum over k of a[m][k] * b[k][n], each of four signed bytes times four.
  void tdpbssd(int c, int a, int b) {
    check(c != a && c != b && a != b, "tdpbssd: three tiles");
    Tile &sums = at(c), &x = tiles_[static_cast<size_t>(a)], &w = tiles_[static_cast<size_t>(b)];
    check(rows(c) == rows(a) && bytes(c) == bytes(b) && bytes(a) == 4 * static_cast<size_t>(rows(b)) && rows(b) > 0,
          "tdpbssd: shapes that fit");
    Tile result = {};
    for (size_t m = 0; m < static_cast<size_t>(rows(c)); m++)
      for (size_t n = 0; n < bytes(c) / 4; n++) {
        uint32_t sum;
        std::memcpy(&sum, &sums[m][4 * n], 4);
        for (size_t k = 0; k < bytes(a) / 4; k++)
          for (size_t j = 0; j < 4; j++)
            sum += static_cast<uint32_t>(static_cast<int8_t>(x[m][4 * k + j]) * static_cast<int8_t>(w[k][4 * n + j]));
        std::memcpy(&result[m][4 * n], &sum, 4);
      }
    sums = result;
  }

 private:
  using Tile = std::array<std::array<uint8_t, 64>, 16>;
  static constexpr TileConfig none() {
    TileConfig c;
    c.palette = 0;
    return c;
  }
  static const std::byte* row(const void* base, int r, ptrdiff_t stride) {
    return static_cast<const std::byte*>(base) + r * stride;
  }
  int rows(int t) const { return config_.rows[t]; }
  size_t bytes(int t) const { return config_.row_bytes[t]; }
  Tile& at(int t) {
    instructions_++;
    check(configured() && t >= 0 && t < 8 && rows(t) > 0, "a tile that is configured");
    return tiles_[static_cast<size_t>(t)];
  }

  TileConfig config_ = none();
  std::array<Tile, 8> tiles_{};
  int64_t instructions_ = 0;
};

// The arrangement of matmul_tiles.h on such tiles and on the scalar Vec16: tile_products.cpp.
void matmul_on_model(TileModel& tiles, const PanelMatrix& w, const QuantBlock* x, int rows, float* y, int64_t ldy,
                     int begin, int end);

}  // namespace unisono::kernels

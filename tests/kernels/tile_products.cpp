// Compiled as the scalar table's sources are, on any machine.
#include "kernels/matmul_tiles.h"
#include "kernels/tile_model.h"

namespace unisono::kernels {

namespace {
struct ModelUnit {
  TileModel& tiles;
  void configure(const TileConfig& config) { tiles.ldtilecfg(config); }
  void release() { tiles.tilerelease(); }
  template <int T>
  void clear() {
    tiles.tilezero(T);
  }
  template <int T>
  void load(const void* from, ptrdiff_t stride) {
    tiles.tileloadd(T, from, stride);
  }
  template <int Sum, int X, int W>
  void multiply() {
    tiles.tdpbssd(Sum, X, W);
  }
  template <int T>
  void store(int32_t* to, ptrdiff_t stride) {
    tiles.tilestored(T, to, stride);
  }
};
}  // namespace

void matmul_on_model(TileModel& tiles, const PanelMatrix& w, const QuantBlock* x, int rows, float* y, int64_t ldy,
                     int begin, int end) {
  ModelUnit unit{tiles};
  scalar::matmul_tiles(unit, w, x, rows, y, ldy, begin, end, {});
}

}  // namespace unisono::kernels

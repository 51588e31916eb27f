// The table `amx`: avx512bf16's, with int8 products of many rows on tiles. Only select.cpp and its tests see this.
#pragma once

#include "kernels/ops.h"
#include "kernels/probe.h"

namespace unisono::kernels {

namespace amx {  // matmul_amx.cpp
void matmul_int8(const PanelMatrix& w, const QuantBlock* x, int rows, float* y, int64_t ldy, int begin, int end,
                 Upcoming then);
double probe_int8(int64_t rounds);
}  // namespace amx

// What a machine says of its tiles.
struct TileMachine {
  bool (*has)() = nullptr;      // the CPU
  bool (*permits)() = nullptr;  // the system: asked once, before any use, for all threads of the process
};
TileMachine this_machine();

// Whether `tiled` may be used in place of `plain`: only where a trial product of every weight type has equal bits.
struct TileVerdict {
  bool good = false;
  const char* why_not = nullptr;  // a sentence, where the CPU has tiles and they can't be used
};
TileVerdict judge_tiles(const TileMachine& machine, const Ops& tiled, const Ops& plain);

}  // namespace unisono::kernels

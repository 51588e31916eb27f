// Runs code made for CPUs with tiles on CPUs without: each tile instruction is illegal there, and a handler of SIGILL does
// on the thread's TileModel what it says. Decoded from its bytes, so that what is tested is what the assembler wrote.
#pragma once

#include "kernels/tile_model.h"

namespace unisono::kernels {

// While it lives; one at a time. Where tiles are there and permitted, nothing traps.
class TileTrap {
 public:
  TileTrap();
  ~TileTrap();
  TileTrap(const TileTrap&) = delete;
  TileTrap& operator=(const TileTrap&) = delete;

  static TileModel& tiles();  // the calling thread's
};

}  // namespace unisono::kernels

// What this CPU can do at most with one instruction set: loops that keep it busy and compute nothing. Measured beside a
// model's speed, they say how near to the machine's limits it comes. No function here measures time or knows of threads.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/ops.h"

namespace unisono::kernels {

struct Probe {
  // Reads memory[bytes] once, a multiple of 256 that is aligned to 64.
  void (*read)(const std::byte* memory, size_t bytes);
  // The table's fastest products in registers, `rounds` times: of bytes, of bf16, and fused multiply-adds of f32. They
  // return the operations done; a multiply-add counts as two.
  double (*int8)(int64_t rounds);
  double (*bf16)(int64_t rounds);
  double (*f32)(int64_t rounds);
};

// Of the same instruction set as `ops`.
const Probe& probe_of(const Ops& ops);

}  // namespace unisono::kernels

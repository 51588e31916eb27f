// The machine's limits as they are now: what all threads together read from memory, and multiply. Limits move (clocks,
// neighbours on a shared machine), so they are measured again beside every figure that is held against them.
#pragma once

#include <array>
#include <cstdint>

#include "base/buffer.h"
#include "base/thread_team.h"
#include "kernels/probe.h"
#include "model/model.h"

namespace unisono::eval {

class MachineProbe {
 public:
  // Takes 1 GiB, far more than caches hold.
  MachineProbe(const kernels::Probe& probe, ThreadTeam& team);

  // Each some milliseconds of work; the best of three.
  double read_bytes();  // a second
  double operations(model::Activations kind);

 private:
  const kernels::Probe& probe_;
  ThreadTeam& team_;
  Buffer memory_;
  std::array<int64_t, 3> rounds_{};  // of each kind, that take some milliseconds; 0: not known yet
};

// Seconds of a clock that only runs forward.
double seconds_now();

}  // namespace unisono::eval

#include <array>
#include <cstring>

#include "kernels/ops.h"
#include "kernels/probe.h"

namespace unisono::kernels {

extern const Ops ops_scalar;
extern const Probe probe_scalar;
#if defined(__x86_64__)
extern const Ops ops_avx2, ops_avx512;
extern const Probe probe_avx2, probe_avx512;
#endif

std::span<const Ops* const> compiled_ops() {
#if defined(__x86_64__)
  static constexpr std::array<const Ops*, 3> all = {&ops_scalar, &ops_avx2, &ops_avx512};
#else
  static constexpr std::array<const Ops*, 1> all = {&ops_scalar};
#endif
  return all;
}

const Ops& best_ops() {
  const Ops* best = nullptr;
  for (const Ops* ops : compiled_ops())
    if (ops->runs_here()) best = ops;  // they stand in order of speed
  return *best;
}

const Ops* find_ops(const char* name) {
  for (const Ops* ops : compiled_ops())
    if (std::strcmp(ops->name, name) == 0 && ops->runs_here()) return ops;
  return nullptr;
}

const Probe& probe_of([[maybe_unused]] const Ops& ops) {
#if defined(__x86_64__)
  if (&ops == &ops_avx2) return probe_avx2;
  if (&ops == &ops_avx512) return probe_avx512;
#endif
  return probe_scalar;
}

void attention_begin(float* state, int head_dim) {
  std::memset(state, 0, attention_state_floats(head_dim) * sizeof(float));
  state[0] = -1e30f;
}

}  // namespace unisono::kernels

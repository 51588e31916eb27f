#include <array>
#include <cstring>

#include "kernels/ops.h"
#include "kernels/probe.h"

namespace unisono::kernels {

extern const Ops ops_scalar;
extern const Probe probe_scalar;
#if defined(__x86_64__)
extern const Ops ops_avx2, ops_avx512, ops_avx512bf16;
extern const Probe probe_avx2, probe_avx512, probe_avx512bf16;
#endif

std::span<const Ops* const> compiled_ops() {
#if defined(__x86_64__)
  static constexpr std::array<const Ops*, 4> all = {&ops_scalar, &ops_avx2, &ops_avx512, &ops_avx512bf16};
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
  if (&ops == &ops_avx512bf16) return probe_avx512bf16;
#endif
  return probe_scalar;
}

size_t kv_bytes(KvType type, int head_dim) {
  const auto dims = static_cast<size_t>(head_dim), values = (dims + 15) / 16 * 16;
  size_t bytes = kPage * (dims + values);
  switch (type) {
    case KvType::f32: bytes *= 4; break;
    case KvType::f16: bytes *= 2; break;
    case KvType::bf16: bytes = 2 * kPage * ((dims + 1) / 2 * 2 + values); break;
    case KvType::q8_0: bytes += kPage * ((dims + 31) / 32) * 2 * sizeof(float); break;
  }
  return (bytes + 63) / 64 * 64;
}

void attention_begin(float* state, int head_dim) {
  std::memset(state, 0, attention_state_floats(head_dim) * sizeof(float));
  state[0] = -1e30f;
}

}  // namespace unisono::kernels

#include <array>
#include <cstring>

#include "kernels/ops.h"
#include "kernels/probe.h"
#if defined(__x86_64__)
#include "kernels/amx.h"
#endif

namespace unisono::kernels {

extern const Ops ops_scalar;
extern const Probe probe_scalar;
#if defined(__x86_64__)
extern const Ops ops_avx2, ops_avxvnni, ops_avx512, ops_avx512bf16;
extern const Probe probe_avx2, probe_avxvnni, probe_avx512, probe_avx512bf16;

namespace {

const Ops& ops_amx();

const TileVerdict& tiles_here() {
  static const TileVerdict verdict = judge_tiles(this_machine(), ops_amx(), ops_avx512bf16);
  return verdict;
}

const Ops& ops_amx() {
  static const Ops table = [] {
    Ops ops = ops_avx512bf16;
    ops.name = "amx";
    ops.runs_here = [] { return ops_avx512bf16.runs_here() && tiles_here().good; };
    ops.matmul_int8 = amx::matmul_int8;
    return ops;
  }();
  return table;
}

const Probe& probe_amx() {
  static const Probe probe = [] {
    Probe loops = probe_avx512bf16;
    loops.int8 = amx::probe_int8;
    return loops;
  }();
  return probe;
}

}  // namespace
#endif

std::span<const Ops* const> compiled_ops() {
#if defined(__x86_64__)
  static const std::array<const Ops*, 6> all = {&ops_scalar, &ops_avx2, &ops_avxvnni, &ops_avx512, &ops_avx512bf16, &ops_amx()};
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

const char* passed_over() {
#if defined(__x86_64__)
  if (ops_avx512bf16.runs_here()) return tiles_here().why_not;
#endif
  return nullptr;
}

const Ops* find_ops(const char* name) {
  for (const Ops* ops : compiled_ops())
    if (std::strcmp(ops->name, name) == 0 && ops->runs_here()) return ops;
  return nullptr;
}

const Probe& probe_of([[maybe_unused]] const Ops& ops) {
#if defined(__x86_64__)
  if (&ops == &ops_avx2) return probe_avx2;
  if (&ops == &ops_avxvnni) return probe_avxvnni;
  if (&ops == &ops_avx512) return probe_avx512;
  if (&ops == &ops_avx512bf16) return probe_avx512bf16;
  if (&ops == &ops_amx()) return probe_amx();
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

// Kernels on one thread, by instruction set: products by weight type and rows, attention by depth, and what is done to
// rows. And on all CPUs: products whose weights come from memory. G = operations a second (a multiply-add counts as two) or
// bytes a second, as the name of the counter says; `peak` is the share of that table's own loop of products in registers
// (kernels/probe.h).
#include <benchmark/benchmark.h>

#include <chrono>
#include <cstring>
#include <numeric>
#include <string>
#include <utility>

#include "base/thread_team.h"
#include "kernels/probe.h"
#include "kernels/random.h"

namespace unisono::kernels {
namespace {

constexpr int kOutputs = 1536, kInputs = 2048;  // 3.4 MB of Q8_0: a core's L2 does not hold it, all its caches do

// Operations a second of a register loop.
double peak_of(const Ops& ops, double (*Probe::*loop)(int64_t)) {
  const auto begin = std::chrono::steady_clock::now();
  double done = 0, seconds = 0;
  while (seconds < 0.01) {
    done += (probe_of(ops).*loop)(1000);
    seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  }
  return done / seconds;
}

void rate(benchmark::State& state, double operations, double peak) {
  state.counters["op/s"] = benchmark::Counter(operations, benchmark::Counter::kIsIterationInvariantRate);
  if (peak > 0)
    state.counters["peak"] = benchmark::Counter(operations / peak, benchmark::Counter::kIsIterationInvariantRate);
}

enum class Product { int8, bf16, f32 };

void matmul(benchmark::State& state, const Ops* ops, DType type, Product product) {
  FlushDenormals flushed;
  const int rows = static_cast<int>(state.range(0));
  const FileTensor file = random_tensor(type, kOutputs, kInputs, 1);
  const Packed w = pack(file);
  const auto x = random_floats(static_cast<size_t>(rows) * kInputs, 2);
  std::vector<QuantBlock> int8(x.size() / kBlock);
  std::vector<Bf16Block> bf16(x.size() / kBlock);
  ops->quantise(x.data(), static_cast<int64_t>(x.size()), int8.data());
  ops->round_bf16(x.data(), static_cast<int64_t>(x.size()), bf16.data());
  Buffer out(static_cast<size_t>(rows) * kOutputs * sizeof(float));
  float* y = out.as<float>().data();
  for (auto _ : state) {
    switch (product) {
      case Product::int8: ops->matmul_int8(w.matrix, int8.data(), rows, y, kOutputs, 0, w.matrix.panels, {}); break;
      case Product::bf16: ops->matmul_bf16(w.matrix, bf16.data(), rows, y, kOutputs, 0, w.matrix.panels, {}); break;
      case Product::f32: ops->matmul_f32(w.matrix, x.data(), kInputs, rows, y, kOutputs, 0, w.matrix.panels, {}); break;
    }
    benchmark::ClobberMemory();
  }
  rate(state, 2.0 * kOutputs * kInputs * rows,
       peak_of(*ops, product == Product::int8   ? &Probe::int8
                     : product == Product::bf16 ? &Probe::bf16
                                                : &Probe::f32));
}

// Weights of 256 MiB, on all CPUs: `read` is the share of the speed at which the same memory is read, by turns.
void from_memory(benchmark::State& state, const Ops* ops, DType type) {
  const int rows = static_cast<int>(state.range(0));
  const Packed one = pack(random_tensor(type, kLanes, kInputs, 1));
  PanelMatrix w = one.matrix;
  w.panels = static_cast<int>((size_t{256} << 20) / w.panel_bytes) / 4 * 4;
  w.n = w.panels * kLanes;
  Buffer memory(w.panel_bytes * static_cast<size_t>(w.panels));
  for (int p = 0; p < w.panels; p++)
    std::memcpy(memory.data() + w.panel_bytes * static_cast<size_t>(p), one.matrix.data, w.panel_bytes);
  w.data = memory.data();
  const auto x = random_floats(static_cast<size_t>(rows) * kInputs, 2);
  std::vector<QuantBlock> int8(x.size() / kBlock);
  ops->quantise(x.data(), static_cast<int64_t>(x.size()), int8.data());
  std::vector<float> y(static_cast<size_t>(rows) * static_cast<size_t>(w.n));
  ThreadTeam team(static_cast<int>(allowed_cpus().size()));
  const auto seconds = [&](auto run) {
    const auto begin = std::chrono::steady_clock::now();
    team.run([&](Worker& worker) { run(worker.share(w.panels, 4)); });
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  };
  double reading = 0, multiplying = 0;
  for (auto _ : state) {
    reading += seconds([&](Worker::Range panels) {
      probe_of(*ops).read(w.data + w.panel_bytes * static_cast<size_t>(panels.begin),
                          w.panel_bytes * static_cast<size_t>(panels.end - panels.begin));
    });
    const double product = seconds([&](Worker::Range panels) {
      ops->matmul_int8(w, int8.data(), rows, y.data(), w.n, static_cast<int>(panels.begin), static_cast<int>(panels.end), {});
    });
    multiplying += product;
    state.SetIterationTime(product);
  }
  state.SetBytesProcessed(state.iterations() * static_cast<int64_t>(memory.size()));
  state.counters["read"] = reading / multiplying;
}

// A group of query heads of `tokens` tokens at a depth, one kv head of 64 dimensions.
void attention(benchmark::State& state, const Ops* ops, KvType type, int tokens) {
  FlushDenormals flushed;
  constexpr int kDims = 64, kGroup = 3;
  const int depth = static_cast<int>(state.range(0)), positions = depth + tokens,
            n_blocks = (positions + kPage - 1) / kPage;
  KvView kv{.stride = kv_bytes(type, kDims), .head_dim = kDims, .type = type};
  Buffer memory(kv.stride * static_cast<size_t>(n_blocks));
  kv.base = memory.data();
  std::vector<int32_t> blocks(static_cast<size_t>(n_blocks + 15) / 16 * 16);
  std::iota(blocks.begin(), blocks.end(), 0);
  const auto keys = random_floats(size_t{2} * kDims, 3);
  for (int p = 0; p < positions; p++) ops->store_kv(kv, p / kPage, p % kPage, keys.data(), keys.data() + kDims);
  const auto q = random_floats(static_cast<size_t>(tokens) * kGroup * kDims, 4, 0.1f);
  const size_t floats = attention_state_floats(kDims);
  std::vector<float> states(floats * static_cast<size_t>(tokens * kGroup));
  std::vector<AttentionToken> row;
  for (int t = 0; t < tokens; t++)
    row.push_back({&q[static_cast<size_t>(t) * kGroup * kDims], &states[floats * static_cast<size_t>(t * kGroup)], depth + t});
  const AttentionItem item{.tokens = row.data(), .n_tokens = tokens, .group = kGroup, .head_stride = floats, .blocks = blocks.data(), .kv = kv};
  for (auto _ : state) {
    for (int r = 0; r < tokens * kGroup; r++) attention_begin(&states[floats * static_cast<size_t>(r)], kDims);
    ops->attend(item, 0, (positions - 1) / kSplit + 1, true);
    benchmark::ClobberMemory();
  }
  rate(state, 4.0 * kDims * kGroup * tokens * (depth + (tokens + 1) / 2.0), peak_of(*ops, type == KvType::bf16 ? &Probe::bf16 : &Probe::f32));
}

template <class Row>
void row(benchmark::State& state, const Ops* ops, Row run) {
  FlushDenormals flushed;
  const int n = static_cast<int>(state.range(0));
  auto x = random_floats(static_cast<size_t>(n), 5), y = random_floats(static_cast<size_t>(n), 6);
  for (auto _ : state) {
    run(*ops, x.data(), y.data(), n);
    benchmark::ClobberMemory();
  }
  state.SetItemsProcessed(state.iterations() * n);
}

void add_all() {
  const auto name = [](const Ops* ops, const std::string& what) { return what + "/" + ops->name; };
  for (const Ops* ops : ops_here()) {
    const bool slow = std::string(ops->name) == "scalar";
    for (DType type : kAllTypes)
      for (const auto& [product, what] : {std::pair{Product::int8, "int8/"}, {Product::bf16, "bf16/"}, {Product::f32, "f32/"}}) {
        const bool plain = type == DType::f32 || type == DType::f16;
        if (product == Product::int8 ? !is_quantised(type) : product == Product::bf16 ? plain : !plain) continue;
        auto* products = benchmark::RegisterBenchmark(
            name(ops, std::string("matmul_") + what + std::string(info(type).name)).c_str(), matmul, ops, type, product);
        for (int rows : {1, 4, 8, 16, 32, 64, 512})
          if (!slow || rows == 4) products->Arg(rows);
      }
    if (!slow)
      for (const DType type : {DType::q8_0, DType::q4_0, DType::q4_1, DType::q4_k, DType::q6_k})
        benchmark::RegisterBenchmark(name(ops, "from_memory/" + std::string(info(type).name)).c_str(), from_memory, ops, type)
            ->Arg(1)->Arg(2)->Arg(4)->Arg(16)->UseManualTime()->MinTime(1);
    for (const auto& [type, what] : {std::pair{KvType::f16, "f16"}, {KvType::bf16, "bf16"}})
      for (int tokens : {1, 12, 16, 20}) {
        auto* attend = benchmark::RegisterBenchmark(name(ops, std::string("attention/") + what + "/tokens:" + std::to_string(tokens)).c_str(),
                                                    attention, ops, type, tokens);
        for (int depth : {256, 4096, 16384})
          if (!slow || depth == 256) attend->Arg(depth);
      }
    const auto add_row = [&](const char* what, auto run) {
      benchmark::RegisterBenchmark(name(ops, what).c_str(), [ops, run](benchmark::State& state) {
        row(state, ops, run);
      })->Arg(2048);
    };
    add_row("quantise", [](const Ops& o, float* x, float*, int n) {
      QuantBlock out[64];
      o.quantise(x, n, out);
      benchmark::DoNotOptimize(out);
    });
    add_row("rms_norm", [](const Ops& o, float* x, float* y, int n) { o.rms_norm(x, y, 1e-5f, x, n); });
    add_row("silu_gate", [](const Ops& o, float* x, float* y, int n) { o.gate(GateKind::silu, x, y, y, n); });
    add_row("add", [](const Ops& o, float* x, float* y, int n) { o.add(x, y, n); });
    add_row("rope", [](const Ops& o, float* x, float* y, int n) { o.rope(x, y, y + n / 2, n); });
  }
}

}  // namespace
}  // namespace unisono::kernels

int main(int argc, char** argv) {
  unisono::kernels::add_all();
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 1;
  benchmark::RunSpecifiedBenchmarks();
  return 0;
}

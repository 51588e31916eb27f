// Time from a row of logits to a token, by vocabulary and settings.
#include <benchmark/benchmark.h>

#include <random>
#include <vector>

#include "decode/logprobs.h"
#include "decode/sampler.h"

namespace unisono::decode {
namespace {

std::vector<std::vector<float>> rows(size_t vocab) {
  std::mt19937 rng(1);
  std::normal_distribution<float> normal(0, 3);
  std::vector<std::vector<float>> out(8, std::vector<float>(vocab));
  for (auto& row : out)
    for (float& v : row) v = normal(rng);
  return out;
}

void run(benchmark::State& state, const SamplingParams& params) {
  const auto data = rows(static_cast<size_t>(state.range(0)));
  SamplerScratch scratch;
  uint64_t position = 0;
  for (auto _ : state) {
    position++;
    benchmark::DoNotOptimize(sample({.logits = data[position % data.size()], .position = position}, params, scratch));
  }
}

void log_probabilities(benchmark::State& state) {
  const auto data = rows(static_cast<size_t>(state.range(0)));
  LogprobScratch scratch;
  std::vector<Scored> top;
  size_t i = 0;
  for (auto _ : state) {
    const auto& row = data[i++ % data.size()];
    const LogSoftmax softmax(row, scratch);
    top_logprobs(row, softmax, 5, top);
    benchmark::DoNotOptimize(top.data());
  }
}

#define SIZES ->Arg(49152)->Arg(262144)->Unit(benchmark::kMicrosecond)
BENCHMARK_CAPTURE(run, greedy, {.temperature = 0}) SIZES;
BENCHMARK_CAPTURE(run, temperature, {.temperature = 0.8f}) SIZES;
BENCHMARK_CAPTURE(run, top_k_40_top_p, {.temperature = 0.8f, .top_k = 40, .top_p = 0.95f}) SIZES;
BENCHMARK_CAPTURE(run, top_p, {.temperature = 1, .top_p = 0.9f}) SIZES;
BENCHMARK_CAPTURE(run, min_p, {.temperature = 1, .min_p = 0.05f}) SIZES;
BENCHMARK(log_probabilities) SIZES;

}  // namespace
}  // namespace unisono::decode

BENCHMARK_MAIN();

// The bench on a small random model: what it says it ran, and what that must have cost.
#include "eval/bench.h"

#include <gtest/gtest.h>

#include "engine/tiny_world.h"

namespace unisono::eval {
namespace {

const auto kSilent = [](const std::string&) {};

TEST(Bench, TellsWhatItRan) {
  engine::TinyWorld world(2);
  const BenchOptions options{.prompt = 40,
                             .generate = 5,
                             .depths = {0, 32},
                             .sequences = {1, 3},
                             .shared_prefix = true,
                             .repetitions = 2};
  auto results = bench(*world.model, world.team, options, kSilent);
  ASSERT_TRUE(results.ok()) << results.error().message;
  // Prefill and decode at each; a shared prefix takes a depth and several sequences.
  ASSERT_EQ(results->size(), 9u);
  int at = 0;
  for (int depth : {0, 32})
    for (int n : {1, 3}) {
      const auto& prefill = (*results)[static_cast<size_t>(at++)];
      EXPECT_EQ(prefill.test, "prefill");
      EXPECT_EQ(prefill.tokens, 40 * n);
      EXPECT_EQ(prefill.depth, depth);
      for (bool shared : {false, true}) {
        if (shared && (depth == 0 || n == 1)) continue;
        const auto& decode = (*results)[static_cast<size_t>(at++)];
        EXPECT_EQ(decode.test, "decode");
        EXPECT_EQ(decode.tokens, 5 * n);
        EXPECT_EQ(decode.sequences, n);
        EXPECT_EQ(decode.shared, shared);
      }
    }
  for (const auto& r : *results) {
    EXPECT_EQ(r.seconds.size(), 2u);
    EXPECT_LE(r.slowest(), r.tokens_rate());
    EXPECT_LE(r.tokens_rate(), r.fastest());
    EXPECT_GT(r.arithmetic_share(), 0);
    if (r.test == "decode") {
      EXPECT_GT(r.read_share(), 0);
    }
  }
}

TEST(Bench, CountsWhatMustBeReadAndMultiplied) {
  engine::TinyWorld world(1);
  const auto& h = world.hparams;
  const BenchOptions options{.prompt = 3,
                             .generate = 2,
                             .depths = {16},
                             .sequences = {2},
                             .shared_prefix = true,
                             .repetitions = 1};
  auto results = bench(*world.model, world.team, options, kSilent);
  ASSERT_TRUE(results.ok());
  ASSERT_EQ(h.n_layers, 2);
  const double keys_values = 2.0 * 64 * 2 * 32, rest = 2.0 * (2 * 64 * 64 + 3 * 64 * 96), head = 2.0 * 64 * 288;
  const double position = 4.0 * 64;                            // a layer's query against one position, its values too
  const double kv = 2.0 * h.n_layers * h.n_kv_heads * 16 * 2;  // bytes of a position
  const double weights = static_cast<double>(world.model->weight_bytes());
  // The last layer's rest is of the prompt's last token only.
  EXPECT_EQ((*results)[0].operations, 2 * (3 * 2 * keys_values + (3 + 1) * rest + head + position * (17 + 18 + 19 + 19)));
  EXPECT_EQ((*results)[1].operations, 2 * (2 * 2 * (keys_values + rest) + 2 * head + 2 * position * (17 + 18)));
  EXPECT_EQ((*results)[1].bytes, 2 * weights + 2 * kv * (17 + 18));
  EXPECT_EQ((*results)[2].bytes, 2 * weights + kv * (16 + 2 * 1 + 16 + 2 * 2));
}

// Of a mixture only the experts that a step's rows went to are read: as many as differ, here at least and at most.
TEST(Bench, CountsTheExpertsThatAreRead) {
  engine::TinyWorld world(2, engine::TinyWorld::mixture_hparams());
  const auto& h = world.hparams;
  const BenchOptions options{.prompt = 3, .generate = 4, .depths = {0}, .sequences = {1, 2}, .repetitions = 2};
  auto results = bench(*world.model, world.team, options, kSilent);
  ASSERT_TRUE(results.ok());
  const double kv = 2.0 * h.n_layers * h.n_kv_heads * 16 * 2, positions = 1 + 2 + 3 + 4;
  const double expert = 4.0 * 3 * 64 * 32, all = static_cast<double>(world.model->weight_bytes());  // F32
  const double others = all - h.n_layers * h.n_experts * expert;
  EXPECT_EQ((*results)[1].bytes, 4 * (others + h.n_layers * 2 * expert) + kv * positions);
  const double two = (*results)[3].bytes - 2 * kv * positions;
  EXPECT_GE(two, 4 * (others + h.n_layers * 2 * expert));
  EXPECT_LE(two, 4 * (others + h.n_layers * 4 * expert));
  const double products = 2.0 * h.n_layers * (64 * (64 + 2 * 32) + 64 * 64 + 64 * 6 + 2 * 3 * 64 * 32), head = 2.0 * 64 * 288;
  EXPECT_EQ((*results)[1].operations, 4 * products + 4 * head + 4.0 * h.n_layers * 64 * positions);
}

TEST(Bench, RefusesWhatMemoryDoesNotHold) {
  engine::TinyWorld world(1);
  auto results = bench(*world.model, world.team, {.depths = {1000}, .most_kv_bytes = 1e5}, kSilent);
  ASSERT_FALSE(results.ok());
  EXPECT_NE(results.error().message.find("depth 1000"), std::string::npos);
}

TEST(MachineProbe, MeasuresOnEveryInstructionSet) {
  ThreadTeam team(2);
  for (const auto* ops : kernels::compiled_ops()) {
    if (!ops->runs_here()) continue;
    MachineProbe probe(kernels::probe_of(*ops), team);
    EXPECT_GT(probe.read_bytes(), 1e8) << ops->name;
    // Integer products of bytes are several to one of floats; the scalar table promises nothing.
    if (ops != &kernels::best_ops()) continue;
    EXPECT_GT(probe.operations(model::Activations::int8), probe.operations(model::Activations::f32)) << ops->name;
  }
}

}  // namespace
}  // namespace unisono::eval

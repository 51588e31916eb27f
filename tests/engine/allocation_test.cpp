// A step in the steady state allocates nothing in the engine and the sampler, and once in the model (its deal of tiles).
#include <gtest/gtest.h>

#include <atomic>
#include <cstdlib>
#include <new>
#include <random>

#include "engine/collector.h"
#include "engine/tiny_world.h"

namespace {

std::atomic<uint64_t> n_allocations{0};

void* counted(size_t bytes, size_t alignment) {
  n_allocations.fetch_add(1, std::memory_order_relaxed);
  void* memory = alignment <= alignof(std::max_align_t)
                     ? std::malloc(bytes)
                     : std::aligned_alloc(alignment, (bytes + alignment - 1) / alignment * alignment);
  if (memory == nullptr) std::abort();
  return memory;
}

}  // namespace

// The whole test binary counts; only this test looks.
void* operator new(size_t bytes) { return counted(bytes == 0 ? 1 : bytes, 1); }
void* operator new(size_t bytes, std::align_val_t alignment) { return counted(bytes, static_cast<size_t>(alignment)); }
// std::stable_sort asks this way. Left out, a sanitizer's own would meet our delete.
void* operator new(size_t bytes, const std::nothrow_t&) noexcept { return counted(bytes == 0 ? 1 : bytes, 1); }
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, const std::nothrow_t&) noexcept { std::free(memory); }
void operator delete(void* memory, size_t) noexcept { std::free(memory); }
void operator delete(void* memory, std::align_val_t) noexcept { std::free(memory); }
void operator delete(void* memory, size_t, std::align_val_t) noexcept { std::free(memory); }

namespace unisono::engine {
namespace {

class Allocation : public ::testing::TestWithParam<model::Hparams> {};

TEST_P(Allocation, AStepInTheSteadyStateAllocatesNothing) {
  TinyWorld world(2, GetParam());
  Engine engine(*world.model, world.tokenizer.get(), world.team, {.n_blocks = 100, .end_tokens = {kEos}});
  std::mt19937 rng(1);
  std::atomic<uint64_t> at_40{0}, at_140{0};
  std::vector<Sent> others;
  Request watched{.prompt = {kBos, 5, 6, 7}, .max_tokens = 160, .stop = {"never in this text"}, .ignore_eos = true};
  watched.sampling = {.temperature = 0.8f, .top_k = 40, .top_p = 0.95f, .seed = 1};
  auto collector = std::make_shared<Collector>();
  watched.on_delta = [&, collector](Delta&& delta) {
    if (at_40 == 0 && delta.usage.completion_tokens >= 40) at_40 = n_allocations.load();
    if (at_140 == 0 && delta.usage.completion_tokens >= 140) at_140 = n_allocations.load();
    if (delta.finish) collector->take(std::move(delta));
  };
  for (int i = 0; i < 3; i++) {
    Request other{.prompt = {kBos, 9}, .max_tokens = 250, .ignore_eos = true};
    other.sampling = {.temperature = i == 0 ? 0.0f : 1.0f, .seed = rng()};
    if (i == 1) other.sampling.repetition_penalty = 1.2f;
    if (i == 2) other.sampling.top_p = 0.9f;
    Sent sent;
    other.on_delta = [collector = sent.collector](Delta&& delta) {
      if (delta.finish) collector->take(std::move(delta));
    };
    ASSERT_TRUE(engine.submit(std::move(other)).ok());
    others.push_back(sent);
  }
  ASSERT_TRUE(engine.submit(std::move(watched)).ok());
  collector->wait();
  for (const Sent& sent : others) sent.collector->wait();
  ASSERT_GT(at_40, 0u);
  EXPECT_EQ(at_140 - at_40, 0u) << "in 100 steps";
}

INSTANTIATE_TEST_SUITE_P(Worlds, Allocation, ::testing::Values(TinyWorld::tiny_hparams(), TinyWorld::mixture_hparams()),
                         [](const auto& t) { return std::string(t.param.n_experts > 0 ? "Mixture" : "Dense"); });

}  // namespace
}  // namespace unisono::engine

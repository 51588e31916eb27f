// Layers that see a window, with blocks of their own: they hold few, and no bit of an answer depends on it. The oracle is a
// store in which all layers keep everything.
#include "engine/window_blocks.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <functional>
#include <numeric>
#include <random>
#include <thread>

#include "engine/collector.h"
#include "engine/scheduler.h"
#include "engine/tiny_world.h"

namespace unisono::engine {
namespace {

constexpr int kBlock = model::kBlockTokens;

int held(const Sequence& sequence) { return static_cast<int>(sequence.window_blocks.size()) - sequence.n_passed; }

// What "ceil(window / 16) + 2" says, written out.
int most(int window) { return (window + kBlock - 1) / kBlock + 2; }

TEST(WindowBlocks, ALongSequenceHoldsItsWindow) {
  for (const int window : {1, 15, 16, 17, 40, 64}) {
    for (const int budget : {1, 7, 48, 300}) {
      BlockPool pool(100);
      WindowBlocks windows(most(window) + blocks_for(budget), 100, window, budget);
      Scheduler scheduler(pool, {.token_budget = budget}, nullptr, &windows);
      Sequence sequence;
      sequence.n_tokens = 900;
      scheduler.add(sequence);
      for (int steps = 0; sequence.n_tokens < 1500; steps++) {
        const auto plan = scheduler.plan();
        ASSERT_EQ(plan.size(), 1u);
        EXPECT_LE(held(sequence), most(window) + plan[0].n_rows / kBlock);
        EXPECT_GE(held(sequence) * kBlock, std::min(sequence.n_computed + 1, window));
        scheduler.audit();
        scheduler.commit();
        scheduler.audit();
        EXPECT_LE(held(sequence), most(window));
        EXPECT_EQ(windows.n_blocks() - windows.n_free(), held(sequence));
        if (sequence.pending() == 0) sequence.n_tokens++;
      }
      EXPECT_EQ(sequence.blocks.size(), 94u);
      scheduler.remove(sequence);
      EXPECT_EQ(windows.n_free(), windows.n_blocks());
    }
  }
}

TEST(WindowBlocks, WhoFindsNoRoomForItsWindowWaitsOrGivesWay) {
  BlockPool pool(100);
  WindowBlocks windows(10, 100, 40, 16);  // 9 of them for windows, of up to 5
  Scheduler scheduler(pool, {.token_budget = 16}, nullptr, &windows);
  Sequence a, b, c;
  a.n_tokens = 200;
  b.n_tokens = 16;
  c.n_tokens = 33;
  for (Sequence* s : {&a, &b, &c}) scheduler.add(*s);
  const auto step = [&] {
    std::vector<Sequence*> planned;
    for (const PlanItem& item : scheduler.plan()) planned.push_back(item.sequence);
    scheduler.audit();
    scheduler.commit();
    scheduler.audit();
    for (Sequence* s : planned)
      if (s->pending() == 0) s->n_tokens++;
  };
  for (int steps = 0; scheduler.n_preemptions() == 0; steps++) {
    ASSERT_LT(steps, 200);
    step();
    EXPECT_TRUE(c.blocks.empty()) << "5, 1 and 3 would leave b none to grow by";
  }
  EXPECT_EQ(b.n_tokens, 65) << "its fifth block would be the tenth";
  EXPECT_TRUE(b.window_blocks.empty());
  EXPECT_GT(pool.n_free(), 50) << "of the others there are plenty";
  scheduler.remove(a);
  for (int steps = 0; b.n_tokens < 100; steps++) {
    ASSERT_LT(steps, 200);
    step();
  }
  EXPECT_GT(c.n_tokens, 33);
  EXPECT_EQ(scheduler.n_preemptions(), 2u) << "c, the newer, gave way at its fifth block";
}

TEST(WindowBlocks, TheNumberFollowsTheContext) {
  const int held = WindowBlocks::most_held(512);
  EXPECT_EQ(held, 34);
  EXPECT_EQ(WindowBlocks::good_number(10000, 512, 32768, 512), 2500);
  EXPECT_EQ(WindowBlocks::good_number(10000, 512, 544, 512), 10000);
  EXPECT_EQ(WindowBlocks::good_number(10000, 512, 1088, 512), 5000);
  EXPECT_EQ(WindowBlocks::good_number(2, 512, 32768, 512), 34 + 32);
  model::Hparams h = TinyWorld::windowed_hparams(40);
  EXPECT_TRUE(WindowBlocks::useful(h, 41));
  EXPECT_FALSE(WindowBlocks::useful(h, 40)) << "nobody leaves the window";
  h.windowed = {1, 1, 1};
  EXPECT_FALSE(WindowBlocks::useful(h, 1024)) << "one kind of layers";
  EXPECT_FALSE(WindowBlocks::useful(TinyWorld::tiny_hparams(), 256));
}

// Steps of several sequences with long shared beginnings: with blocks of their own that are gone behind the window, and all
// in one.
TEST(WindowStore, SameBitsAsAStoreThatKeepsEverything) {
  constexpr int kSequences = 3, kLength = 600, kWindow = 40;
  for (const int threads : {1, 2, 3}) {
    TinyWorld world(threads, TinyWorld::windowed_hparams(kWindow));
    const model::Hparams& h = world.hparams;
    const int n_blocks = kSequences * blocks_for(kLength);
    model::KvStore whole(model::KvType::bf16, h.n_layers, h.n_kv_heads, h.head_dim, n_blocks),
        apart(model::KvType::bf16, h.windowed, h.n_kv_heads, h.head_dim, n_blocks, n_blocks);
    std::mt19937 rng(1);
    const auto text = random_tokens(rng, kLength);
    std::vector<std::vector<int32_t>> tables(kSequences), windows(kSequences);
    for (int s = 0; s < kSequences; s++) {
      tables[static_cast<size_t>(s)].resize(static_cast<size_t>(blocks_for(kLength)));
      std::iota(tables[static_cast<size_t>(s)].begin(), tables[static_cast<size_t>(s)].end(), s * blocks_for(kLength));
      if (s > 0) std::copy_n(tables[0].begin(), 32, tables[static_cast<size_t>(s)].begin());  // two splits are shared
      for (int b = blocks_for(kLength) - 1; b >= 0; b--)                                      // nothing is shared here
        windows[static_cast<size_t>(s)].push_back(s * blocks_for(kLength) + b);
    }
    // Steps: (sequence, first position, rows). Up to 512 all compute the same, and may so write to the same blocks.
    using Part = std::array<int, 3>;
    std::vector<std::vector<Part>> steps;
    for (int s = 0; s < kSequences; s++)
      for (int at = 0; at < 512; at += 128) steps.push_back({{s, at, 128}});
    for (int at = 512; at < kLength - 30; at++) steps.push_back({{0, at, 1}, {1, at, 1}, {2, at, 1}});
    steps.push_back({{0, kLength - 30, 30}, {1, kLength - 30, 1}, {2, kLength - 30, 7}});
    for (const auto& step : steps) {
      std::vector<TokenId> tokens;
      std::vector<model::BatchSequence> in_whole, in_apart;
      std::vector<int32_t> rows;
      for (const auto& [s, first, n] : step) {
        auto& window = windows[static_cast<size_t>(s)];
        // What is behind the window is gone: a read there would be far outside.
        std::fill_n(window.begin(), std::max(0, first - kWindow + 1) / kBlock, -(1 << 20));
        in_whole.push_back({static_cast<int32_t>(tokens.size()), n, first, tables[static_cast<size_t>(s)], {}});
        in_apart.push_back({static_cast<int32_t>(tokens.size()), n, first, tables[static_cast<size_t>(s)], window});
        for (int i = 0; i < n; i++) {
          rows.push_back(static_cast<int32_t>(tokens.size()));
          tokens.push_back(first + i < 512 ? text[static_cast<size_t>(first + i)]
                                           : (text[static_cast<size_t>(first + i)] + s) % 288);
        }
      }
      const auto a = world.model->forward({tokens, in_whole, rows}, whole, world.team);
      const std::vector<float> expected(a.begin(), a.end());
      const auto b = world.model->forward({tokens, in_apart, rows}, apart, world.team);
      ASSERT_TRUE(std::ranges::equal(expected, b)) << threads << " threads, position " << step[0][1];
    }
  }
}

// Attention that notes whether what it is told to fetch lies in the store.
std::span<const std::byte> spied_regions[2];
std::atomic<int> n_fetched, n_outside;
void spying_attend(const kernels::AttentionItem& item, int begin, int end, bool fold) {
  for (const std::byte* block : item.then) {
    if (block == nullptr) continue;
    n_fetched++;
    if (std::ranges::none_of(spied_regions, [&](auto region) {
          return !std::less<>()(block, region.data()) && std::less<>()(block, region.data() + region.size());
        }))
      n_outside++;
  }
  kernels::best_ops().attend(item, begin, end, fold);
}

TEST(WindowStore, NothingIsFetchedFromBehindTheWindow) {
  constexpr int kLength = 544, kWindow = 40, kChunk = 128;
  for (const int threads : {1, 2, 3}) {
    TinyWorld world(threads, TinyWorld::windowed_hparams(kWindow));
    const model::Hparams& h = world.hparams;
    kernels::Ops spy = kernels::best_ops();
    spy.attend = spying_attend;
    auto model = model::Model::load(*model::find_arch("llama"), h, world.weights, {.ops = &spy}, world.team);
    ASSERT_TRUE(model.ok());
    const int n_blocks = blocks_for(kLength);
    model::KvStore kv(model::KvType::bf16, h.windowed, h.n_kv_heads, h.head_dim, n_blocks, n_blocks);
    for (int layer = h.n_layers - 1; layer >= 0; layer--)  // the first of each kind begins its memory
      spied_regions[kv.has_window_blocks(layer) ? 1 : 0] = {kv.head(layer, 0),
                                                            kv.stride(layer) * static_cast<size_t>(n_blocks)};
    std::vector<int32_t> table(static_cast<size_t>(n_blocks));
    std::iota(table.begin(), table.end(), 0);
    std::vector<int32_t> window = table;
    std::mt19937 rng(2);
    const auto text = random_tokens(rng, kLength);
    n_fetched = n_outside = 0;
    for (int at = 0; at < kLength;) {
      const int rows = at + kChunk < kLength ? kChunk : 1, last = rows - 1;
      std::fill_n(window.begin(), std::max(0, at - kWindow + 1) / kBlock, -(1 << 20));
      const model::BatchSequence sequence{0, rows, at, table, window};
      model->forward(
          {std::span(text).subspan(static_cast<size_t>(at), static_cast<size_t>(rows)), {&sequence, 1}, {&last, 1}}, kv,
          world.team);
      at += rows;
    }
    EXPECT_GT(n_fetched, 0) << threads << " threads";
    EXPECT_EQ(n_outside, 0) << threads << " threads";
  }
}

// The likeliest tokens, by a store that keeps everything.
std::vector<TokenId> likeliest(TinyWorld& world, std::vector<TokenId> text, int n) {
  const FlushDenormals flushed;
  const model::Hparams& h = world.hparams;
  const int longest = static_cast<int>(text.size()) + n;
  model::KvStore kv(model::KvType::bf16, h.n_layers, h.n_kv_heads, h.head_dim, blocks_for(longest));
  std::vector<int32_t> table(static_cast<size_t>(blocks_for(longest)));
  std::iota(table.begin(), table.end(), 0);
  std::vector<TokenId> out;
  for (int at = 0; static_cast<int>(out.size()) < n;) {
    const auto tokens = std::span<const TokenId>(text).subspan(static_cast<size_t>(at));
    const int32_t rows = static_cast<int32_t>(tokens.size()), last = rows - 1;
    const model::BatchSequence sequence{0, rows, at, table, {}};
    const auto logits = world.model->forward({tokens, {&sequence, 1}, {&last, 1}}, kv, world.team);
    at += rows;
    out.push_back(static_cast<TokenId>(std::ranges::max_element(logits) - logits.begin()));
    text.push_back(out.back());
  }
  return out;
}

std::vector<TokenId> answer(const Sent& sent) {
  sent.collector->wait();
  std::vector<TokenId> out;
  for (const TokenResult& token : sent.collector->tokens()) out.push_back(token.id);
  return out;
}

Request greedy(std::vector<TokenId> prompt, int n) {
  Request request{.prompt = std::move(prompt), .max_tokens = n, .ignore_eos = true, .logprobs = true};
  request.sampling.temperature = 0;
  return request;
}

TEST(WindowEngine, APrefixIsFoundAsFarAsItsWindowIsThere) {
  TinyWorld world(2, TinyWorld::windowed_hparams(40));
  std::mt19937 rng(3);
  const auto text = random_tokens(rng, 400);
  // 4 blocks are the most a window takes; with a step of 32 rows 6, and 20 more in which things are found again.
  Engine engine(*world.model, world.tokenizer.get(), world.team,
                {.n_blocks = 64, .n_window_blocks = 26, .token_budget = 32});
  const auto ask = [&](int length, int more) {
    std::vector<TokenId> prompt(text.begin(), text.begin() + length);
    prompt.insert(prompt.end(), static_cast<size_t>(more), 7);
    const Sent sent = send(engine, greedy(prompt, 12));
    const auto answered = answer(sent);  // before the model is used for something else
    EXPECT_EQ(answered, likeliest(world, prompt, 12)) << length;
    expect_idle(engine);
    return sent.collector->last().usage.cached_tokens;
  };
  EXPECT_EQ(ask(400, 0), 0);
  EXPECT_EQ(ask(400, 5), 400) << "its window is still there";
  EXPECT_EQ(ask(320, 5), 320) << "as are blocks that left it a while ago";
  EXPECT_EQ(ask(64, 5), 0) << "and those that left it long ago are not";
  EXPECT_EQ(ask(64, 5), 64);
}

struct Load {
  int n_threads, n_blocks, n_window_blocks, budget, max_running;
};

class WindowsUnderLoad : public ::testing::TestWithParam<Load> {};

TEST_P(WindowsUnderLoad, SameAnswersAsAStoreThatKeepsEverything) {
  const Load load = GetParam();
  TinyWorld world(load.n_threads, TinyWorld::windowed_hparams(24));
  std::mt19937 rng(5);
  const auto text = random_tokens(rng, 160);
  std::vector<Request> requests;
  std::vector<std::vector<TokenId>> truth;
  for (int i = 0; i < 24; i++) {
    std::vector<TokenId> prompt(text.begin(), text.begin() + 1 + static_cast<int>(rng() % 160));
    const auto more = random_tokens(rng, static_cast<int>(rng() % 30));
    prompt.insert(prompt.end(), more.begin(), more.end());
    requests.push_back(greedy(prompt, 1 + static_cast<int>(rng() % 60)));
    truth.push_back(likeliest(world, prompt, requests.back().max_tokens));
  }
  for (const bool cache : {true, false}) {
    Engine engine(*world.model, world.tokenizer.get(), world.team,
                  {.max_context = 256,
                   .n_blocks = load.n_blocks,
                   .n_window_blocks = load.n_window_blocks,
                   .token_budget = load.budget,
                   .max_running = load.max_running,
                   .prefix_cache = cache});
    for (int round = 0; round < 2; round++) {
      std::vector<Sent> sent;
      for (const Request& request : requests) {
        sent.push_back(send(engine, request));
        const Sent stranger = send(engine, requests[rng() % requests.size()]);
        if (rng() % 2) engine.cancel(stranger.id);
        if (rng() % 4 == 0) engine.audit();
      }
      for (size_t i = 0; i < sent.size(); i++) EXPECT_EQ(answer(sent[i]), truth[i]) << "request " << i;
      while (engine.state().running + engine.state().waiting > 0) std::this_thread::yield();
      expect_idle(engine);
    }
    EXPECT_EQ(engine.state().prefix_hits > 0, cache);
    if (load.max_running > 1 && load.n_blocks < 100) {
      EXPECT_GT(engine.state().preemptions, 0u);
    }
  }
}

// Room for all; too few blocks; too few window blocks; one at a time.
INSTANTIATE_TEST_SUITE_P(Loads, WindowsUnderLoad,
                         ::testing::Values(Load{2, 400, 300, 512, 64}, Load{2, 24, 60, 48, 16}, Load{3, 400, 16, 40, 16},
                                           Load{1, 20, 5, 16, 1}));

}  // namespace
}  // namespace unisono::engine

// The prefix cache through the whole engine: it changes how much is computed, and nothing else.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <random>

#include "engine/collector.h"
#include "engine/load.h"
#include "engine/tiny_world.h"

namespace unisono::engine {
namespace {

constexpr int kContext = 160;

EngineOptions options(int n_blocks, bool prefix_cache, int token_budget = 512, int max_running = 64) {
  return {.max_context = kContext,
          .n_blocks = n_blocks,
          .token_budget = token_budget,
          .max_running = max_running,
          .prefix_cache = prefix_cache,
          .end_tokens = {kEos}};
}

Sent run(Engine& engine, const Request& request) {
  Sent sent = send(engine, request);
  sent.collector->wait();
  return sent;
}

int cached(const Sent& sent) { return sent.collector->last().usage.cached_tokens; }

// Prompts that go on from one of a few beginnings, some of them from another's middle.
std::vector<Request> requests_that_begin_alike(unsigned seed, int n) {
  std::mt19937 rng(seed);
  std::vector<std::vector<TokenId>> beginnings;
  for (const int length : {16, 40, 64, 100}) beginnings.push_back(random_tokens(rng, length));
  std::copy_n(beginnings[3].begin(), 50, beginnings[2].begin());
  std::vector<Request> requests;
  for (int i = 0; i < n; i++) {
    Request r{.prompt = beginnings[rng() % 4], .max_tokens = 1 + static_cast<int>(rng() % 40), .logprobs = true};
    const auto more = random_tokens(rng, static_cast<int>(rng() % 20));
    if (rng() % 4) r.prompt.insert(r.prompt.end(), more.begin(), more.end());
    r.sampling = {.temperature = rng() % 3 ? 0.8f : 0.0f, .seed = rng()};
    if (rng() % 4 == 0) r.sampling.repetition_penalty = 1.2f;
    r.ignore_eos = rng() % 2;
    r.top_logprobs = static_cast<int>(rng() % 3);
    r.prompt_logprobs = rng() % 4 == 0;
    if (rng() % 4 == 0) r.cache_salt = "one";
    requests.push_back(std::move(r));
  }
  return requests;
}

struct Load {
  int n_threads, n_blocks, token_budget, max_running;
};

class CacheUnderLoad : public ::testing::TestWithParam<Load> {};

TEST_P(CacheUnderLoad, SameAnswersWithAndWithout) {
  const Load load = GetParam();
  const auto requests = requests_that_begin_alike(1, 40);
  static const std::vector<std::string> truth = [&] {
    TinyWorld alone(1);
    Engine engine(*alone.model, alone.tokenizer.get(), alone.team, options(64, false));
    std::vector<std::string> out;
    for (const Request& request : requests) {
      const Sent sent = run(engine, request);
      EXPECT_EQ(cached(sent), 0);
      out.push_back(sent.collector->record());
    }
    EXPECT_EQ(engine.state().prefix_queries, 0u);
    return out;
  }();
  TinyWorld world(load.n_threads);
  std::mt19937 rng(static_cast<unsigned>(load.token_budget));
  for (const bool cache : {true, false}) {
    Engine engine(*world.model, world.tokenizer.get(), world.team,
                  options(load.n_blocks, cache, load.token_budget, load.max_running));
    uint64_t hits = 0;
    for (int round = 0; round < (cache ? 2 : 1); round++) {
      std::vector<size_t> order(requests.size());
      for (size_t i = 0; i < order.size(); i++) order[i] = i;
      std::ranges::shuffle(order, rng);
      std::vector<Sent> sent(requests.size()), strangers;
      for (const size_t i : order) {
        sent[i] = send(engine, requests[i]);
        Request stranger = requests[rng() % requests.size()];
        stranger.sampling.seed = rng();
        strangers.push_back(send(engine, stranger));
        if (rng() % 2) engine.cancel(strangers[rng() % strangers.size()].id);
        if (rng() % 4 == 0) engine.audit();
      }
      for (size_t i = 0; i < sent.size(); i++) {
        sent[i].collector->wait();
        EXPECT_EQ(sent[i].collector->record(), truth[i]) << "request " << i;
        if (!cache || requests[i].prompt_logprobs) {
          EXPECT_EQ(cached(sent[i]), 0);
        }
        EXPECT_LT(cached(sent[i]), static_cast<int>(requests[i].prompt.size()));
        EXPECT_EQ(cached(sent[i]) % model::kBlockTokens, 0);
        hits += static_cast<uint64_t>(cached(sent[i]));
      }
      for (const Sent& stranger : strangers) stranger.collector->wait();
      expect_idle(engine);
    }
    const EngineState state = engine.state();
    EXPECT_EQ(hits > 0, cache);
    EXPECT_GE(state.prefix_hits, hits);
    EXPECT_GE(state.prefix_queries, state.prefix_hits);
    if (load.n_blocks < 16 && load.max_running > 1) {
      EXPECT_GT(state.preemptions, 0u);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Loads, CacheUnderLoad,
                         ::testing::Values(Load{1, 200, 512, 64}, Load{2, 15, 64, 16}, Load{2, 12, 16, 8},
                                           Load{3, 300, 40, 64}, Load{1, 10, 1, 1}),
                         [](const auto& info) {
                           const Load& l = info.param;
                           return std::to_string(l.n_threads) + "threads_" + std::to_string(l.n_blocks) + "blocks_budget" +
                                  std::to_string(l.token_budget) + "_running" + std::to_string(l.max_running);
                         });

class Cache : public ::testing::Test {
 protected:
  std::mt19937 rng_{1};
  TinyWorld world_{1};
  Engine engine_{*world_.model, world_.tokenizer.get(), world_.team, options(40, true)};
};

TEST_F(Cache, AConversationGoesOnFromItsLastFullBlock) {
  Request request{.prompt = random_tokens(rng_, 50), .max_tokens = 20, .ignore_eos = true, .logprobs = true};
  const Sent first = run(engine_, request);
  EXPECT_EQ(cached(first), 0);
  // The answer's last token was never computed: 69 positions were, 4 full blocks.
  for (const TokenResult& token : first.collector->tokens()) request.prompt.push_back(token.id);
  const auto question = random_tokens(rng_, 10);
  request.prompt.insert(request.prompt.end(), question.begin(), question.end());
  EXPECT_EQ(cached(run(engine_, request)), 64);
  EXPECT_EQ(engine_.state().prefix_queries, 50u + 80u);
  EXPECT_EQ(engine_.state().prefix_hits, 64u);
}

TEST_F(Cache, AWholePromptStillComputesItsLastToken) {
  Request request{.prompt = random_tokens(rng_, 48), .max_tokens = 5, .ignore_eos = true, .logprobs = true};
  const Sent first = run(engine_, request);
  const uint64_t steps = engine_.state().steps;
  const Sent again = run(engine_, request);
  EXPECT_EQ(cached(again), 32);
  EXPECT_EQ(again.collector->record(), first.collector->record());
  EXPECT_EQ(engine_.state().steps, steps + 5);
}

TEST_F(Cache, DifferentSaltsShareNothing) {
  const auto prompt = random_tokens(rng_, 40);
  for (const char* salt : {"", "a", "b"}) {
    EXPECT_EQ(cached(run(engine_, {.prompt = prompt, .max_tokens = 1, .cache_salt = salt})), 0);
    EXPECT_EQ(cached(run(engine_, {.prompt = prompt, .max_tokens = 1, .cache_salt = salt})), 32);
  }
}

TEST_F(Cache, ScoredPromptsAreComputedAndThenShared) {
  const auto prompt = random_tokens(rng_, 40);
  const Request scored{.prompt = prompt, .max_tokens = 1, .prompt_logprobs = true};
  const Sent first = run(engine_, scored), second = run(engine_, scored);
  EXPECT_EQ(cached(second), 0);
  EXPECT_EQ(first.collector->record(), second.collector->record());
  EXPECT_EQ(cached(run(engine_, {.prompt = prompt, .max_tokens = 1})), 32);
}

TEST_F(Cache, RandomCancelsLoseNoBlock) {
  const auto requests = requests_that_begin_alike(2, 12);
  std::vector<Sent> sent;
  for (int n = 0; n < 400; n++) {
    sent.push_back(send(engine_, requests[rng_() % requests.size()]));
    if (rng_() % 3) engine_.cancel(sent[rng_() % sent.size()].id);
    if (rng_() % 2) sent[rng_() % sent.size()].collector->wait_for_deltas(1 + static_cast<int>(rng_() % 3));
    engine_.audit();
  }
  for (const Sent& s : sent) s.collector->wait();
  expect_idle(engine_);
}

TEST(CacheOfStories, SameTextWithAndWithout) {
  const std::string path = UNISONO_SHARED_DIR "/data/models/stories260K.gguf";
  if (!std::filesystem::exists(path)) GTEST_SKIP() << "needs " << path << ", which only a development machine has";
  ThreadTeam team(2);
  const auto loaded = load(path, {}, team);
  ASSERT_TRUE(loaded.ok());
  const text::Tokenizer& tokenizer = (*loaded)->tokenizer;
  const std::string beginning =
      "Once upon a time there was a little girl named Lily. She had a big red ball that she loved very much. One day she "
      "went to the park with her mom and her dog. ";
  std::vector<Request> requests;
  for (const char* end : {"", "The dog", "Then Lily", "Tom came and said, \"", "The ball"}) {
    for (int variant = 0; variant < 3; variant++) {
      Request r{.prompt = tokenizer.encode(beginning + end, true, false), .max_tokens = 60, .logprobs = true};
      r.sampling = {.temperature = 0.5f * static_cast<float>(variant), .seed = 7};
      r.top_logprobs = 2;
      requests.push_back(std::move(r));
    }
  }
  std::vector<std::string> truth;
  for (const auto& [cache, n_blocks] : {std::pair{false, 500}, {true, 500}, {true, 20}}) {
    Engine engine((*loaded)->model, tokenizer, team, {.max_context = 256, .n_blocks = n_blocks, .prefix_cache = cache});
    if (truth.empty()) {
      for (const Request& r : requests) truth.push_back(run(engine, r).collector->record());
      continue;
    }
    for (int round = 0; round < 2; round++) {
      std::vector<Sent> sent;
      for (const Request& r : requests) sent.push_back(send(engine, r));
      for (size_t i = 0; i < sent.size(); i++) {
        sent[i].collector->wait();
        EXPECT_EQ(sent[i].collector->record(), truth[i]) << "request " << i << ", blocks " << n_blocks;
      }
      expect_idle(engine);
    }
    EXPECT_GT(engine.state().prefix_hits, engine.state().prefix_queries / 4);
  }
}

}  // namespace
}  // namespace unisono::engine

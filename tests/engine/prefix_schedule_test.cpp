// Sharing as the scheduler does it, against a store that remembers after which whole text each position was written.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <memory>
#include <optional>
#include <random>

#include "engine/scheduler.h"

namespace unisono::engine {
namespace {

constexpr size_t kBlock = model::kBlockTokens;

// Numbers for texts: equal numbers, equal salts and equal tokens from the beginning. No hashes.
class Texts {
 public:
  int after(int text, int token) {
    const auto [place, fresh] = numbers_.try_emplace({text, token}, static_cast<int>(numbers_.size()) + 1);
    return place->second;
  }
  // Of each beginning of a sequence: [position].
  std::vector<int> of(const Sequence& sequence) {
    int text = -1;
    for (const char c : sequence.salt) text = after(text, -1000 - c);
    text = after(text, -1);
    std::vector<int> out;
    for (const TokenId token : sequence.tokens) out.push_back(text = after(text, token));
    return out;
  }

 private:
  std::map<std::pair<int, int>, int> numbers_{};
};

// What a store of keys and values would hold: which text each position of each block was computed after.
class Store {
 public:
  explicit Store(int n_blocks) : texts_(static_cast<size_t>(n_blocks) * kBlock, 0) {}
  int& at(const std::vector<BlockId>& table, size_t position) {
    return texts_.at(static_cast<size_t>(table.at(position / kBlock)) * kBlock + position % kBlock);
  }

 private:
  std::vector<int> texts_;
};

Sequence of(std::vector<TokenId> tokens, std::string_view salt = "") {
  Sequence sequence;
  sequence.n_tokens = static_cast<int>(tokens.size());
  sequence.tokens = std::move(tokens);
  sequence.salt = salt;
  return sequence;
}

void append(Sequence& sequence, TokenId token) {
  sequence.tokens.push_back(token);
  sequence.n_tokens++;
}

// window: 0, or what some layers see, in blocks of their own.
struct World {
  explicit World(int n_blocks, const SchedulerLimits& limits = {}, BlockHash hash = chained_hash, int window = 0,
                 int n_window_blocks = 0)
      : window(window),
        pool(n_blocks),
        index(n_blocks, hash),
        scheduler(pool, limits, &index, make_window(n_window_blocks, limits.token_budget)),
        store(n_blocks),
        window_store(n_window_blocks) {}
  WindowBlocks* make_window(int n_window_blocks, int budget) {
    return window == 0 ? nullptr : &window_blocks.emplace(n_window_blocks, pool.n_blocks(), window, budget);
  }

  // Computes a step, checking that all it reads was written for this very text.
  void step() {
    const auto plan = scheduler.plan();
    scheduler.audit();
    ASSERT_FALSE(plan.empty());
    for (const PlanItem& item : plan) {
      const auto numbers = texts.of(*item.sequence);
      const auto first = static_cast<size_t>(item.sequence->n_computed), n_rows = static_cast<size_t>(item.n_rows);
      for (size_t i = first; i < first + n_rows; i++) store.at(item.sequence->blocks, i) = numbers[i];
      for (size_t i = first; i < first + n_rows && window > 0; i++)
        window_store.at(item.sequence->window_blocks, i) = numbers[i];
      rows += item.n_rows;
    }
    for (const PlanItem& item : plan) {
      const auto numbers = texts.of(*item.sequence);
      const auto end = static_cast<size_t>(item.sequence->n_computed + item.n_rows);
      for (size_t i = 0; i < end; i++)
        ASSERT_EQ(store.at(item.sequence->blocks, i), numbers[i]) << "position " << i << " holds another text's values";
      for (auto i = static_cast<size_t>(std::max(0, item.sequence->n_computed - window + 1)); i < end && window > 0; i++)
        ASSERT_EQ(window_store.at(item.sequence->window_blocks, i), numbers[i]) << "position " << i << " in the window";
    }
    scheduler.commit();
    scheduler.audit();
  }
  // Alone, until its last token is computed.
  void run(Sequence& sequence) {
    scheduler.add(sequence);
    while (sequence.pending() > 0) step();
    scheduler.remove(sequence);
    scheduler.audit();
  }

  const int window;
  BlockPool pool;
  PrefixIndex index;
  std::optional<WindowBlocks> window_blocks{};
  Scheduler scheduler;
  Store store, window_store;
  Texts texts{};
  int rows = 0;
};

std::vector<TokenId> counting(TokenId first, int n) {
  std::vector<TokenId> tokens;
  for (TokenId i = 0; i < n; i++) tokens.push_back(first + i);
  return tokens;
}

TEST(PrefixSchedule, AWholePromptStillComputesItsLastToken) {
  for (const int n : {15, 16, 17, 31, 32, 33, 48}) {
    World world(20);
    Sequence a = of(counting(0, n)), b = of(counting(0, n));
    world.run(a);
    EXPECT_EQ(*a.n_cached, 0);
    world.rows = 0;
    world.run(b);
    EXPECT_EQ(*b.n_cached, (n - 1) / 16 * 16);
    EXPECT_EQ(world.rows, n - *b.n_cached);
    EXPECT_EQ(world.scheduler.prefix_queries(), 2u * static_cast<unsigned>(n));
    EXPECT_EQ(world.scheduler.prefix_hits(), static_cast<unsigned>(*b.n_cached));
  }
}

TEST(PrefixSchedule, RunningSequencesShare) {
  World world(20);
  Sequence a = of(counting(0, 40)), b = of(counting(0, 70));
  world.scheduler.add(a);
  world.step();
  append(a, 1000);
  world.scheduler.add(b);
  world.step();
  ASSERT_EQ(b.blocks.size(), 5u);
  EXPECT_EQ(b.blocks[0], a.blocks[0]);
  EXPECT_EQ(b.blocks[1], a.blocks[1]);
  EXPECT_EQ(world.pool.references(a.blocks[1]), 2);
  EXPECT_NE(b.blocks[2], a.blocks[2]) << "not full";
  EXPECT_EQ(world.pool.n_free(), 20 - 6);
  world.scheduler.remove(a);
  world.scheduler.audit();
  EXPECT_EQ(world.pool.n_free(), 20 - 5);
}

TEST(PrefixSchedule, WhatTwoComputedAtOnceIsKeptOnce) {
  World world(20);
  Sequence a = of(counting(0, 40)), b = of(counting(0, 40));
  world.scheduler.add(a);
  world.scheduler.add(b);
  world.step();
  EXPECT_EQ(*b.n_cached, 0);
  EXPECT_EQ(a.blocks[0], b.blocks[0]);
  EXPECT_EQ(a.blocks[1], b.blocks[1]);
  EXPECT_NE(a.blocks[2], b.blocks[2]);
  EXPECT_EQ(world.pool.n_free(), 20 - 4);
}

TEST(PrefixSchedule, OnlyComputedBlocksAreFound) {
  World world(20, {.token_budget = 24});
  Sequence a = of(counting(0, 60)), b = of(counting(0, 60));
  world.scheduler.add(a);
  world.step();
  world.step();  // 48 of 60
  world.scheduler.add(b);
  world.step();  // the rest, and b begins
  EXPECT_EQ(*b.n_cached, 48);
  EXPECT_EQ(a.n_computed, 60);
}

TEST(PrefixSchedule, DifferentSaltsShareNothing) {
  World world(20);
  Sequence a = of(counting(0, 40), "a"), b = of(counting(0, 40), "b"), c = of(counting(0, 40)),
           again = of(counting(0, 40), "a");
  for (Sequence* s : {&a, &b, &c}) {
    world.run(*s);
    EXPECT_EQ(*s->n_cached, 0);
  }
  world.run(again);
  EXPECT_EQ(*again.n_cached, 32);
}

TEST(PrefixSchedule, TheLeastRecentlyUsedIsOverwrittenFirstAndFromItsEnd) {
  World world(9);
  const auto kept = [&](TokenId first) {
    std::vector<BlockId> found;
    world.index.find("", counting(first, 48), 9, found);
    return found.size();
  };
  Sequence a = of(counting(0, 48)), b = of(counting(100, 48)), again = of(counting(0, 48));
  world.run(a);
  world.run(b);
  world.run(again);  // a's blocks are now the ones used last, and one that again computed for nothing comes before them
  EXPECT_EQ(*again.n_cached, 32);
  Sequence four_blocks = of(counting(200, 64));  // two that were never used and two of b
  world.run(four_blocks);
  EXPECT_EQ(kept(100), 1u);
  EXPECT_EQ(kept(0), 3u);
  const std::vector<size_t> kept_of_b{0, 0, 0, 0, 0}, kept_of_a{3, 3, 2, 1, 0};
  for (size_t i = 0; i < 5; i++) {
    Sequence one_block = of(counting(static_cast<TokenId>(300 + 100 * i), 16));
    world.run(one_block);
    EXPECT_EQ(kept(100), kept_of_b[i]) << i;
    EXPECT_EQ(kept(0), kept_of_a[i]) << i;
  }
}

TEST(PrefixSchedule, ScoredPromptsTakeOnlyWhatIsScored) {
  World world(20);
  Sequence plain = of(counting(0, 60)), scored = of(counting(0, 60)), half = of(counting(0, 60));
  world.run(plain);
  scored.score_until = 59;
  world.run(scored);
  EXPECT_EQ(*scored.n_cached, 0);
  EXPECT_EQ(world.scheduler.prefix_queries(), 60u) << "nothing was looked for";
  half.score_until = 59;
  half.n_scored = 35;  // before it gave way
  world.run(half);
  EXPECT_EQ(*half.n_cached, 32);
}

TEST(PrefixSchedule, WhoGaveWayComesBackThroughItsBlocks) {
  World world(6);
  Sequence a = of(counting(0, 30)), b = of(counting(100, 34));
  world.scheduler.add(a);
  world.scheduler.add(b);
  world.step();
  append(b, 500);
  while (world.scheduler.n_preemptions() == 0) {
    append(a, 600);
    world.step();
  }
  ASSERT_TRUE(b.blocks.empty());
  world.scheduler.remove(a);
  const int known = b.n_tokens;
  world.rows = 0;
  world.step();
  EXPECT_EQ(world.rows, known - 32) << "its beginning was still there";
}

// Random arrivals of texts that begin alike, answers, cancellations and pools that are far too small, with good hashes and
// with ones that collide all the time: nobody ever reads another text's values, and nothing is lost.
class RandomPrefixes : public ::testing::TestWithParam<BlockHash> {
 protected:
  void storms(bool windows);
};

TEST_P(RandomPrefixes, NobodyReadsAnothersValues) { storms(false); }
TEST_P(RandomPrefixes, NorInAWindow) { storms(true); }

void RandomPrefixes::storms(bool windows) {
  struct Client {
    Sequence sequence{};
    int end = 0;
  };
  uint64_t hits = 0, preemptions = 0;
  for (unsigned seed = 0; seed < 40; seed++) {
    std::mt19937 rng(seed);
    const auto between = [&](int low, int high) {
      return low + static_cast<int>(rng() % static_cast<unsigned>(high - low + 1));
    };
    const int n_blocks = between(4, 30), context = n_blocks * model::kBlockTokens;
    const SchedulerLimits limits{
        .token_budget = between(1, 80), .max_running = between(1, 12), .score_rows = between(1, 64)};
    const int window = windows ? between(1, 90) : 0;
    World world(n_blocks, limits, GetParam(), window, windows ? WindowBlocks::least_blocks(window) + between(0, 60) : 0);
    std::vector<std::unique_ptr<Client>> clients;
    for (int to_come = 50, steps = 0; to_come > 0 || !clients.empty();) {
      ASSERT_LT(++steps, 50000);
      while (to_come > 0 && (rng() % 4 == 0 || clients.empty())) {
        auto client = std::make_unique<Client>();
        std::vector<TokenId> prompt;
        const auto length = static_cast<size_t>(between(1, context - 1));
        while (prompt.size() < length) prompt.insert(prompt.end(), static_cast<size_t>(between(1, 24)), between(0, 1));
        prompt.resize(length);
        client->sequence = of(std::move(prompt), rng() % 4 == 0 ? "salt" : "");
        client->end = std::min(context, static_cast<int>(length) + between(1, 60));
        if (rng() % 4 == 0) client->sequence.score_until = static_cast<int>(length) - 1;
        world.scheduler.add(client->sequence);
        clients.push_back(std::move(client));
        to_come--;
        world.scheduler.audit();
      }
      world.step();
      if (HasFatalFailure()) return;
      std::erase_if(clients, [&](const std::unique_ptr<Client>& client) {
        Sequence& s = client->sequence;
        s.n_scored = std::max(s.n_scored, std::min(s.n_computed, s.score_until));
        if (s.pending() == 0) append(s, between(0, 1));
        const bool leaves = s.n_tokens >= client->end || rng() % 200 == 0;
        if (leaves) world.scheduler.remove(s);
        return leaves;
      });
      world.scheduler.audit();
    }
    EXPECT_EQ(world.pool.n_free(), n_blocks);
    EXPECT_LE(world.index.size(), n_blocks);
    if (windows) {
      EXPECT_EQ(world.window_blocks->n_free(), world.window_blocks->n_blocks());
    }
    hits += world.scheduler.prefix_hits();
    preemptions += world.scheduler.n_preemptions();
  }
  EXPECT_GT(hits, 1000u);
  EXPECT_GT(preemptions, 10u);
}

INSTANTIATE_TEST_SUITE_P(Hashes, RandomPrefixes,
                         ::testing::Values(
                             chained_hash, [](uint64_t parent, BlockTokens t) { return chained_hash(parent, t) & 3; },
                             [](uint64_t, BlockTokens) { return uint64_t{0}; }));

}  // namespace
}  // namespace unisono::engine

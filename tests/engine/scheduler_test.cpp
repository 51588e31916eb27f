#include "engine/scheduler.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <random>
#include <set>

namespace unisono::engine {
namespace {

Sequence of(int n_tokens) {
  Sequence sequence;
  sequence.n_tokens = n_tokens;
  return sequence;
}

// One step in which each sequence that is fully computed gets its next token.
void advance(Scheduler& scheduler) {
  std::vector<Sequence*> planned;
  for (const PlanItem& item : scheduler.plan()) planned.push_back(item.sequence);
  scheduler.commit();
  for (Sequence* sequence : planned)
    if (sequence->pending() == 0) sequence->n_tokens++;
}

TEST(Scheduler, CutsAPromptIntoChunks) {
  BlockPool pool(10);
  Scheduler scheduler(pool, {.token_budget = 32, .max_running = 4});
  Sequence a = of(70);
  scheduler.add(a);
  std::vector<int> rows;
  while (a.n_tokens == 70) {
    const auto plan = scheduler.plan();
    ASSERT_EQ(plan.size(), 1u);
    rows.push_back(plan[0].n_rows);
    scheduler.commit();
    if (a.pending() == 0) a.n_tokens++;
  }
  EXPECT_EQ(rows, (std::vector<int>{32, 32, 6}));
  EXPECT_EQ(scheduler.plan()[0].n_rows, 1);
}

TEST(Scheduler, AtDepthAPromptTakesLessOfAStepThatOthersWaitFor) {
  BlockPool pool(100);
  Scheduler scheduler(pool, {.token_budget = 64, .max_running = 4, .attention_unit = 100});
  Sequence alone = of(300);
  scheduler.add(alone);
  for (int step = 0; step < 4; step++) {
    EXPECT_EQ(scheduler.plan()[0].n_rows, 64);
    scheduler.commit();
  }
  scheduler.remove(alone);

  Sequence other = of(1), prompt = of(900);
  scheduler.add(other);
  advance(scheduler);
  scheduler.add(prompt);
  int steps = 0;
  for (; prompt.pending() > 0 && prompt.n_tokens == 900; steps++) {
    const double price = 1 + prompt.n_computed / 100.0;
    const int before = prompt.n_computed;
    advance(scheduler);
    const int rows = prompt.n_computed - before;
    EXPECT_LE(rows * price, 63);
    EXPECT_TRUE((rows + 1) * price > 63 || prompt.n_tokens == 901) << "no less than it may";
  }
  EXPECT_GT(steps, 900 / 63 * 3);
}

TEST(Scheduler, ALongPromptDoesNotHoldUpOthers) {
  BlockPool pool(100);
  Scheduler scheduler(pool, {.token_budget = 8, .max_running = 4});
  Sequence a = of(3), b = of(4), prompt = of(500);
  scheduler.add(a);
  scheduler.add(b);
  advance(scheduler);
  ASSERT_EQ(a.pending(), 1);
  scheduler.add(prompt);
  for (int step = 0; step < 40; step++) {
    const int before_a = a.n_tokens, before_b = b.n_tokens, before_prompt = prompt.n_computed;
    advance(scheduler);
    EXPECT_EQ(a.n_tokens, before_a + 1);
    EXPECT_EQ(b.n_tokens, before_b + 1);
    EXPECT_EQ(prompt.n_computed, before_prompt + 6);
  }
}

TEST(Scheduler, TheNewestGivesWay) {
  BlockPool pool(5);
  Scheduler scheduler(pool, {.token_budget = 100, .max_running = 4});
  Sequence a = of(30), b = of(14);
  scheduler.add(a);
  scheduler.add(b);
  advance(scheduler);
  ASSERT_EQ(scheduler.n_running(), 2);
  while (b.n_computed > 0) advance(scheduler);  // a: 5 blocks at 65 tokens, or b before
  EXPECT_EQ(scheduler.n_preemptions(), 1u);
  EXPECT_EQ(scheduler.n_waiting(), 1);
  EXPECT_TRUE(b.blocks.empty());
  EXPECT_GT(b.n_tokens, 14) << "what it had answered is kept";
  const int kept = b.n_tokens;
  EXPECT_GT(a.n_computed, 0);
  scheduler.audit();
  scheduler.remove(a);
  const auto plan = scheduler.plan();
  ASSERT_EQ(plan.size(), 1u);
  EXPECT_EQ(plan[0].sequence, &b);
  EXPECT_EQ(plan[0].n_rows, kept) << "all its tokens are computed again";
}

TEST(Scheduler, NobodyGivesWayInVain) {
  BlockPool pool(10);
  Scheduler scheduler(pool, {.token_budget = 200, .max_running = 4});
  Sequence urgent = of(90), patient = of(20), late = of(60);
  patient.priority = 1;
  scheduler.add(urgent);
  scheduler.add(patient);
  advance(scheduler);
  ASSERT_EQ(scheduler.n_running(), 2);
  scheduler.add(late);  // 4 blocks, beside 6 and one in hand
  for (int step = 0; step < 5; step++) {
    const int before = patient.n_tokens;
    advance(scheduler);
    EXPECT_EQ(patient.n_tokens, before + 1) << "without it there would be 3 to have";
    EXPECT_TRUE(late.blocks.empty());
    scheduler.audit();
  }
  EXPECT_EQ(scheduler.n_preemptions(), 0u);
  for (Sequence* s : {&urgent, &late}) scheduler.remove(*s);
  Sequence large = of(150);
  scheduler.add(large);
  advance(scheduler);
  EXPECT_EQ(scheduler.n_preemptions(), 1u);
  EXPECT_TRUE(patient.blocks.empty());
  EXPECT_EQ(large.blocks.size(), 10u);
}

TEST(Scheduler, ScoredPromptsShareTheRowsOfOneStep) {
  BlockPool pool(100);
  Scheduler scheduler(pool, {.token_budget = 1000, .max_running = 4, .score_rows = 64});
  Sequence a = of(100), b = of(100), plain = of(300);
  a.score_until = b.score_until = 99;
  for (Sequence* s : {&a, &b, &plain}) scheduler.add(*s);
  int steps = 0;
  while (a.n_computed < 99 || b.n_computed < 99) {
    int scored = 0;
    for (const PlanItem& item : scheduler.plan())
      if (item.sequence != &plain && item.sequence->n_computed < 99) scored += item.n_rows;
    EXPECT_LE(scored, 64);
    scheduler.commit();
    if (plain.pending() == 0) plain.n_tokens++;
    ASSERT_LT(++steps, 10);
  }
  EXPECT_EQ(plain.n_computed, 300 + steps - 1);
}

// Random arrivals, answers, cancellations and pools that are far too small for all: everyone ends, no block is lost, and
// each step keeps its promises.
TEST(Scheduler, RandomSchedules) {
  struct Client {
    Sequence sequence{};
    int end = 0;
  };
  for (unsigned seed = 0; seed < 60; seed++) {
    std::mt19937 rng(seed);
    const auto between = [&](int low, int high) {
      return low + static_cast<int>(rng() % static_cast<unsigned>(high - low + 1));
    };
    const int n_blocks = between(4, 40), context = n_blocks * model::kBlockTokens;
    const SchedulerLimits limits{
        .token_budget = between(1, 80), .max_running = between(1, 12), .score_rows = between(1, 64)};
    BlockPool pool(n_blocks);
    Scheduler scheduler(pool, limits);
    std::vector<std::unique_ptr<Client>> clients;
    int to_come = 60, steps = 0, total_tokens = 0;
    while (to_come > 0 || !clients.empty()) {
      ASSERT_LT(++steps, 200000);
      while (to_come > 0 && (rng() % 4 == 0 || clients.empty())) {
        auto client = std::make_unique<Client>();
        const int prompt = between(1, context - 1);
        client->sequence.n_tokens = prompt;
        client->end = std::min(context, prompt + between(1, 60));
        if (rng() % 4 == 0) client->sequence.score_until = prompt - 1;
        if (seed % 2 == 1) {  // owners and priorities only change who goes first
          client->sequence.owner = std::string_view("abc").substr(rng() % 3, 1);
          client->sequence.priority = between(-1, 1);
        }
        total_tokens += client->end;
        scheduler.add(client->sequence);
        clients.push_back(std::move(client));
        to_come--;
        scheduler.audit();
      }
      std::set<const Sequence*> decoding;
      for (const auto& c : clients)
        if (!c->sequence.blocks.empty() && c->sequence.pending() == 1) decoding.insert(&c->sequence);
      const auto plan = scheduler.plan();
      scheduler.audit();
      ASSERT_FALSE(plan.empty());
      int rows = 0, scored = 0;
      std::set<const Sequence*> planned;
      for (const PlanItem& item : plan) {
        ASSERT_TRUE(planned.insert(item.sequence).second);
        ASSERT_GE(item.n_rows, 1);
        ASSERT_LE(item.n_rows, item.sequence->pending());
        ASSERT_LE(blocks_for(item.sequence->n_computed + item.n_rows), static_cast<int>(item.sequence->blocks.size()));
        rows += item.n_rows;
        if (item.sequence->n_computed < item.sequence->score_until) scored += item.n_rows;
      }
      ASSERT_LE(rows, limits.token_budget);
      ASSERT_LE(scored, limits.score_rows);
      ASSERT_LE(scheduler.n_running(), std::min(limits.max_running, limits.token_budget));
      for (const Sequence* s : decoding)
        ASSERT_TRUE(planned.contains(s) || s->blocks.empty()) << "a decoding sequence was passed over";
      scheduler.commit();
      scheduler.audit();
      std::erase_if(clients, [&](const std::unique_ptr<Client>& client) {
        Sequence& s = client->sequence;
        if (planned.contains(&s) && s.pending() == 0) s.n_tokens++;
        const bool leaves = s.n_tokens >= client->end || rng() % 300 == 0;
        if (leaves) scheduler.remove(s);
        return leaves;
      });
      scheduler.audit();
    }
    EXPECT_EQ(pool.n_free(), n_blocks);
    EXPECT_EQ(scheduler.n_running() + scheduler.n_waiting(), 0);
  }
}

}  // namespace
}  // namespace unisono::engine

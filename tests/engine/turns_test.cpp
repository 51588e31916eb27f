// Who goes first: priorities, owners in turn, and who gives way.
#include <gtest/gtest.h>

#include <deque>
#include <vector>

#include "engine/scheduler.h"

namespace unisono::engine {
namespace {

Sequence of(int n_tokens, std::string_view owner = "", int priority = 0) {
  Sequence sequence;
  sequence.n_tokens = n_tokens;
  sequence.owner = owner;
  sequence.priority = priority;
  return sequence;
}

std::vector<Sequence*> step(Scheduler& scheduler) {
  std::vector<Sequence*> planned;
  for (const PlanItem& item : scheduler.plan()) planned.push_back(item.sequence);
  scheduler.audit();
  scheduler.commit();
  return planned;
}

// One slot: each runs one step and leaves. The order in which they had it.
std::vector<Sequence*> served(Scheduler& scheduler, size_t n) {
  std::vector<Sequence*> order;
  while (order.size() < n) {
    const auto planned = step(scheduler);
    EXPECT_EQ(planned.size(), 1u);
    order.push_back(planned[0]);
    scheduler.remove(*planned[0]);
  }
  return order;
}

TEST(Turns, OwnersTakeTurnsHoweverManyRequestsOneHas) {
  BlockPool pool(10);
  Scheduler scheduler(pool, {.token_budget = 100, .max_running = 1});
  std::deque<Sequence> hog, other;
  for (int i = 0; i < 5; i++) scheduler.add(hog.emplace_back(of(3, "hog")));
  for (int i = 0; i < 2; i++) scheduler.add(other.emplace_back(of(3, "other")));
  EXPECT_EQ(served(scheduler, 7),
            (std::vector<Sequence*>{&hog[0], &other[0], &hog[1], &other[1], &hog[2], &hog[3], &hog[4]}));
  EXPECT_EQ(scheduler.n_waiting(), 0);
}

TEST(Turns, WithOneOwnerTheOldestIsFirst) {
  BlockPool pool(10);
  Scheduler scheduler(pool, {.token_budget = 100, .max_running = 1});
  std::deque<Sequence> all;
  std::vector<Sequence*> order;
  for (int i = 0; i < 6; i++) order.push_back(&all.emplace_back(of(3)));
  for (Sequence* s : order) scheduler.add(*s);
  EXPECT_EQ(served(scheduler, 6), order);
}

TEST(Turns, PriorityGoesBeforeTurnAndArrival) {
  BlockPool pool(10);
  Scheduler scheduler(pool, {.token_budget = 100, .max_running = 1});
  Sequence late = of(3, "a", 5), normal = of(3, "a"), urgent = of(3, "a", -1), other = of(3, "b", 5);
  for (Sequence* s : {&late, &normal, &urgent, &other}) scheduler.add(*s);
  EXPECT_EQ(served(scheduler, 4), (std::vector<Sequence*>{&urgent, &normal, &other, &late}))
      << "of equals b, who had no turn yet";
}

TEST(Turns, APromptOfAnotherOwnerSharesThePrefillBudget) {
  BlockPool pool(200);
  Scheduler scheduler(pool, {.token_budget = 32, .max_running = 8});
  Sequence first = of(1000, "a"), second = of(1000, "a"), other = of(64, "b");
  scheduler.add(first);
  scheduler.add(second);
  step(scheduler);
  EXPECT_EQ(first.n_computed, 32);
  scheduler.add(other);  // in the middle of a's prompts
  for (int i = 0; i < 4; i++) step(scheduler);
  EXPECT_EQ(other.n_computed, 64) << "every second step is b's";
  EXPECT_EQ(first.n_computed, 96);
  EXPECT_EQ(second.n_computed, 0) << "a's own go one after the other";
}

TEST(Turns, AnUrgentPromptGoesBeforeOneThatHasBegun) {
  BlockPool pool(200);
  Scheduler scheduler(pool, {.token_budget = 32, .max_running = 8});
  Sequence patient = of(1000, "", 1), urgent = of(64, "", 0);
  scheduler.add(patient);
  step(scheduler);
  scheduler.add(urgent);
  step(scheduler);
  step(scheduler);
  EXPECT_EQ(urgent.n_computed, 64);
  EXPECT_EQ(patient.n_computed, 32);
}

TEST(Turns, AnUrgentOneTakesTheRoomOfThePatient) {
  BlockPool pool(9);
  Scheduler scheduler(pool, {.token_budget = 200, .max_running = 8});
  Sequence first = of(30, "", 1), newest = of(30, "", 1), urgent = of(60, "", 0), equal = of(60, "", 0);
  scheduler.add(first);
  scheduler.add(newest);
  step(scheduler);
  ASSERT_EQ(scheduler.n_running(), 2);
  scheduler.add(urgent);
  step(scheduler);
  EXPECT_EQ(urgent.n_computed, 60);
  EXPECT_EQ(newest.n_computed, 0) << "the newest of the patient gave way";
  EXPECT_EQ(first.n_computed, 30);
  EXPECT_EQ(scheduler.n_preemptions(), 1u);
  scheduler.add(equal);
  step(scheduler);
  EXPECT_EQ(urgent.n_computed, 60) << "among equals nobody is put out";
  EXPECT_EQ(first.n_computed, 0);
  EXPECT_EQ(equal.n_computed, 60);
  scheduler.remove(urgent);
  step(scheduler);
  EXPECT_EQ(first.n_computed, 30) << "who gave way last ran first";
}

TEST(Turns, AnUrgentOneTakesTheSlotOfThePatient) {
  BlockPool pool(100);
  Scheduler scheduler(pool, {.token_budget = 64, .max_running = 2});
  Sequence a = of(10, "", 7), b = of(10, "", 8), urgent = of(10, "", 0);
  scheduler.add(a);
  scheduler.add(b);
  step(scheduler);
  scheduler.add(urgent);
  step(scheduler);
  EXPECT_EQ(urgent.n_computed, 10);
  EXPECT_EQ(a.n_computed, 10);
  EXPECT_EQ(b.n_computed, 0);
}

TEST(Turns, TheLeastUrgentGivesWayFirst) {
  BlockPool pool(6);
  Scheduler scheduler(pool, {.token_budget = 200, .max_running = 4});
  Sequence patient = of(30, "", 3), urgent = of(30, "", 0);
  scheduler.add(patient);
  step(scheduler);
  scheduler.add(urgent);  // newer, and yet it stays
  step(scheduler);
  ASSERT_EQ(scheduler.n_running(), 2);
  while (scheduler.n_preemptions() == 0) {
    for (Sequence* s : {&patient, &urgent})
      if (s->pending() == 0) s->n_tokens++;
    step(scheduler);
  }
  EXPECT_TRUE(patient.blocks.empty());
  EXPECT_FALSE(urgent.blocks.empty());
}

}  // namespace
}  // namespace unisono::engine

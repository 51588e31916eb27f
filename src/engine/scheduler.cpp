#include "engine/scheduler.h"

#include <algorithm>

#include "base/check.h"

namespace unisono::engine {

namespace {

SchedulerLimits checked(SchedulerLimits limits) {
  check(limits.token_budget >= 1 && limits.max_running >= 1 && limits.score_rows >= 1, "limits of at least one");
  limits.max_running = std::min(limits.max_running, limits.token_budget);
  return limits;
}

}  // namespace

Scheduler::Scheduler(BlockPool& pool, const SchedulerLimits& limits) : pool_(pool), limits_(checked(limits)) {
  running_.reserve(static_cast<size_t>(limits_.max_running));
  plan_.reserve(static_cast<size_t>(limits_.max_running));
}

void Scheduler::add(Sequence& sequence) {
  check(sequence.n_tokens >= 1 && sequence.n_computed == 0 && sequence.blocks.empty(), "a new sequence holds nothing");
  waiting_.push_back(&sequence);
}

void Scheduler::remove(Sequence& sequence) {
  release_blocks(sequence);
  if (std::erase(running_, &sequence) == 0) std::erase(waiting_, &sequence);
  std::erase_if(plan_, [&](const PlanItem& item) { return item.sequence == &sequence; });
}

std::span<const PlanItem> Scheduler::plan() {
  plan_.clear();
  budget_left_ = limits_.token_budget;
  score_rows_left_ = limits_.score_rows;
  plan_single_tokens();
  plan_chunks();
  admit();
  return plan_;
}

void Scheduler::commit() {
  for (const PlanItem& item : plan_) item.sequence->n_computed += item.n_rows;
  plan_.clear();
}

void Scheduler::plan_single_tokens() {
  // Preemption takes from the end, so what was planned before stays.
  for (size_t i = 0; i < running_.size(); i++) {
    Sequence& sequence = *running_[i];
    if (sequence.pending() != 1) continue;
    if (!grow(sequence)) break;  // it was itself the newest
    plan_.push_back({&sequence, 1});
    budget_left_--;
  }
}

void Scheduler::plan_chunks() {
  for (Sequence* sequence : running_)
    if (sequence->pending() > 1) plan_chunk(*sequence);
}

void Scheduler::admit() {
  while (budget_left_ > 0 && !waiting_.empty() && n_running() < limits_.max_running) {
    Sequence& sequence = *waiting_.front();
    // A block in hand for each running sequence, so that who comes in now needn't leave at once.
    const int reserve = n_running();
    const int wanted = blocks_for(sequence.n_tokens);
    if (wanted + reserve > pool_.n_free()) return;
    waiting_.pop_front();
    running_.push_back(&sequence);
    for (int i = 0; i < wanted; i++) sequence.blocks.push_back(pool_.acquire());
    plan_chunk(sequence);
  }
}

// Its blocks are there since it was admitted.
void Scheduler::plan_chunk(Sequence& sequence) {
  int n_rows = std::min(sequence.pending(), budget_left_);
  const bool scored = sequence.n_computed < sequence.score_until;
  if (scored) n_rows = std::min(n_rows, score_rows_left_);
  if (n_rows == 0) return;
  plan_.push_back({&sequence, n_rows});
  budget_left_ -= n_rows;
  if (scored) score_rows_left_ -= n_rows;
}

// Blocks for all known tokens, preempting others if need be. False: it had to give way itself.
bool Scheduler::grow(Sequence& sequence) {
  while (blocks_for(sequence.n_tokens) > static_cast<int>(sequence.blocks.size())) {
    while (pool_.n_free() == 0) {
      const bool itself = running_.back() == &sequence;
      check(!itself || running_.size() > 1, "a sequence fits the pool alone");
      preempt_newest();
      if (itself) return false;
    }
    sequence.blocks.push_back(pool_.acquire());
  }
  return true;
}

void Scheduler::preempt_newest() {
  Sequence& newest = *running_.back();
  running_.pop_back();
  release_blocks(newest);
  waiting_.push_front(&newest);
  n_preemptions_++;
}

// From the end, so that the beginnings, which others are likelier to want again, are overwritten last.
void Scheduler::release_blocks(Sequence& sequence) {
  while (!sequence.blocks.empty()) {
    pool_.release(sequence.blocks.back());
    sequence.blocks.pop_back();
  }
  sequence.n_computed = 0;
}

void Scheduler::audit() const {
  pool_.audit();
  std::vector<int> held(static_cast<size_t>(pool_.n_blocks()), 0);
  for (const Sequence* sequence : running_) {
    check(sequence->n_computed <= sequence->n_tokens, "nothing is computed that isn't known");
    check(blocks_for(sequence->n_computed) <= static_cast<int>(sequence->blocks.size()), "what is computed has blocks");
    for (const BlockId block : sequence->blocks) held[static_cast<size_t>(block)]++;
  }
  for (const Sequence* sequence : waiting_)
    check(sequence->blocks.empty() && sequence->n_computed == 0, "who waits holds nothing");
  for (BlockId block = 0; block < pool_.n_blocks(); block++)
    check(pool_.references(block) == held[static_cast<size_t>(block)], "a block is held by the tables that list it");
}

}  // namespace unisono::engine

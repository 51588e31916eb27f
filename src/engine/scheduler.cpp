#include "engine/scheduler.h"

#include <algorithm>

#include "base/check.h"

namespace unisono::engine {

namespace {

SchedulerLimits checked(SchedulerLimits limits, const WindowBlocks* window) {
  check(limits.token_budget >= 1 && limits.max_running >= 1 && limits.score_rows >= 1, "limits of at least one");
  if (window != nullptr) limits.token_budget = std::min(limits.token_budget, window->row_budget());
  limits.max_running = std::min(limits.max_running, limits.token_budget);
  return limits;
}

}  // namespace

Scheduler::Scheduler(BlockPool& pool, const SchedulerLimits& limits, PrefixIndex* index, WindowBlocks* window)
    : pool_(pool),
      limits_(checked(limits, window)),
      index_(index),
      window_(window),
      leaving_(static_cast<size_t>(pool.n_blocks()), 0) {
  running_.reserve(static_cast<size_t>(limits_.max_running));
  plan_.reserve(static_cast<size_t>(limits_.max_running));
  prompts_.reserve(static_cast<size_t>(limits_.max_running));
  if (index_ != nullptr) found_.reserve(static_cast<size_t>(pool_.n_blocks()));
}

void Scheduler::add(Sequence& sequence) {
  check(sequence.n_tokens >= 1 && sequence.n_computed == 0 && sequence.blocks.empty(), "a new sequence holds nothing");
  sequence.arrival = ++n_arrivals_;
  turns_.enter(sequence);
  waiting_.add(sequence);
}

void Scheduler::remove(Sequence& sequence) {
  release_blocks(sequence);
  if (std::erase(running_, &sequence) == 0) waiting_.remove(sequence);
  turns_.leave(sequence);
  std::erase_if(plan_, [&](const PlanItem& item) { return item.sequence == &sequence; });
}

std::span<const PlanItem> Scheduler::plan() {
  plan_.clear();
  budget_left_ = limits_.token_budget;
  score_rows_left_ = limits_.score_rows;
  make_room();
  plan_single_tokens();
  others_wait_ = !plan_.empty();
  plan_prompts();
  return plan_;
}

void Scheduler::commit() {
  for (const PlanItem& item : plan_) {
    const int n_before = item.sequence->n_computed;
    item.sequence->n_computed += item.n_rows;
    if (index_ != nullptr) enter_full_blocks(*item.sequence, n_before);
    if (window_ != nullptr) window_->pass(*item.sequence);
  }
  plan_.clear();
}

// Before anything is planned: what is planned stays. Nobody gives way to one who wouldn't fit even so.
void Scheduler::make_room() {
  const Sequence* next = waiting_.next();
  if (next == nullptr) return;
  const auto less_urgent = std::ranges::upper_bound(running_, next->priority, {}, &Sequence::priority);
  if (less_urgent == running_.end() || !fits(*next, static_cast<int>(less_urgent - running_.begin()))) return;
  while (!fits(*next, n_running())) preempt_newest();
}

void Scheduler::plan_single_tokens() {
  // Preemption takes from the end, so what was planned before stays.
  for (size_t i = 0; i < running_.size(); i++) {
    Sequence& sequence = *running_[i];
    if (sequence.pending() != 1) continue;
    if (!grow(sequence)) break;  // it was itself the newest
    plan_rows(sequence, 1);
  }
}

void Scheduler::plan_prompts() {
  prompts_.clear();
  for (Sequence* sequence : running_)
    if (sequence->pending() > 1) prompts_.push_back(sequence);
  // Whoever waits first keeps its place: while it doesn't fit, nobody is admitted.
  for (bool admitting = true; budget_left_ > 0;) {
    const auto best =
        std::ranges::min_element(prompts_, [](const Sequence* a, const Sequence* b) { return sooner(*a, *b); });
    Sequence* next = admitting ? waiting_.next() : nullptr;
    if (next != nullptr && (best == prompts_.end() || sooner(*next, **best))) {
      admitting = fits(*next, n_running());
      if (admitting) admit(*next);
    } else if (best != prompts_.end()) {
      Sequence& sequence = **best;
      prompts_.erase(best);
      plan_chunk(sequence);
    } else {
      return;
    }
  }
}

// Where only the first n_staying of those that run stay. Finds its prefix, too.
bool Scheduler::fits(const Sequence& sequence, int n_staying) {
  if (n_staying >= limits_.max_running) return false;
  find_prefix(sequence);
  const std::span<Sequence* const> staying = std::span(running_).first(static_cast<size_t>(n_staying));
  if (window_ != nullptr && !window_->fits(sequence, staying)) return false;
  const std::span<Sequence* const> leaving = std::span(running_).subspan(staying.size());
  int n_free = pool_.n_free();
  for (const Sequence* other : leaving)
    for (const BlockId block : other->blocks)
      if (++leaving_[static_cast<size_t>(block)] == pool_.references(block)) n_free++;
  const auto held = std::ranges::count_if(
      found_, [&](BlockId block) { return pool_.references(block) > leaving_[static_cast<size_t>(block)]; });
  for (const Sequence* other : leaving)
    for (const BlockId block : other->blocks) leaving_[static_cast<size_t>(block)] = 0;
  // A block in hand for each that stays, so that who comes in now needn't leave at once.
  return blocks_for(sequence.n_tokens) - static_cast<int>(held) + n_staying <= n_free;
}

// Right after fits() with all that run.
void Scheduler::admit(Sequence& sequence) {
  waiting_.remove(sequence);
  const auto after = std::ranges::upper_bound(running_, sequence.priority, {}, &Sequence::priority);
  running_.insert(after, &sequence);
  start(sequence);
  plan_chunk(sequence);
}

// Only looks; who stays in the queue for want of blocks has touched none.
void Scheduler::find_prefix(const Sequence& sequence) {
  found_.clear();
  if (index_ == nullptr) return;
  int usable = sequence.n_tokens - 1;
  if (sequence.score_until > 0) usable = std::min(usable, sequence.n_scored);
  index_->find(sequence.salt, sequence.tokens, usable / model::kBlockTokens, found_);
  if (window_ != nullptr) found_.resize(window_->usable(found_));
}

// With the blocks found and fresh ones for the rest. The found ones first: a fresh one may not be one of them.
void Scheduler::start(Sequence& sequence) {
  for (const BlockId block : found_) {
    pool_.share(block);
    sequence.blocks.push_back(block);
  }
  sequence.n_computed = static_cast<int>(found_.size()) * model::kBlockTokens;
  if (window_ != nullptr) window_->start(sequence, found_);
  while (static_cast<int>(sequence.blocks.size()) < blocks_for(sequence.n_tokens)) sequence.blocks.push_back(take_block());
  if (sequence.n_cached) return;
  sequence.n_cached = sequence.n_computed;
  if (index_ == nullptr || sequence.score_until > 0) return;
  prefix_queries_ += static_cast<uint64_t>(sequence.n_tokens);
  prefix_hits_ += static_cast<uint64_t>(sequence.n_computed);
}

void Scheduler::enter_full_blocks(Sequence& sequence, int n_before) {
  const std::span<const TokenId> tokens(sequence.tokens);
  for (auto i = static_cast<size_t>(n_before / model::kBlockTokens);
       i < static_cast<size_t>(sequence.n_computed / model::kBlockTokens); i++) {
    const BlockId mine = sequence.blocks[i], parent = i == 0 ? PrefixIndex::kNone : sequence.blocks[i - 1];
    const auto content = tokens.subspan(i * model::kBlockTokens).first<model::kBlockTokens>();
    const BlockId entered = index_->enter(sequence.salt, parent, content, mine);
    if (window_ != nullptr) window_->enter(sequence, i, entered);
    if (entered == mine) continue;
    pool_.share(entered);
    pool_.release(mine);
    sequence.blocks[i] = entered;
  }
}

// What the block held can't be found from here on.
BlockId Scheduler::take_block() {
  const BlockId block = pool_.acquire();
  if (index_ != nullptr) index_->forget(block);
  if (window_ != nullptr) window_->forget(block);
  return block;
}

// Its blocks are there since it was admitted.
void Scheduler::plan_chunk(Sequence& sequence) {
  // A token at a depth of one unit takes twice the time of one at the beginning.
  const bool counts = others_wait_ && limits_.attention_unit > 0;
  const double price = counts ? 1 + static_cast<double>(sequence.n_computed) / limits_.attention_unit : 1;
  int n_rows = std::min(sequence.pending(), std::max(1, static_cast<int>(budget_left_ / price)));
  const bool scored = sequence.n_computed < sequence.score_until;
  if (scored) n_rows = std::min(n_rows, score_rows_left_);
  if (n_rows == 0) return;
  plan_rows(sequence, n_rows);
  budget_left_ = std::max(0, budget_left_ - static_cast<int>(n_rows * (price - 1)));
  turns_.take(sequence);
  if (scored) score_rows_left_ -= n_rows;
}

void Scheduler::plan_rows(Sequence& sequence, int n_rows) {
  if (window_ != nullptr) window_->cover(sequence, n_rows);
  plan_.push_back({&sequence, n_rows});
  budget_left_ -= n_rows;
}

// Blocks for all known tokens, preempting others if need be. False: it had to give way itself.
bool Scheduler::grow(Sequence& sequence) {
  while (blocks_for(sequence.n_tokens) > static_cast<int>(sequence.blocks.size())) {
    while (!take_one_more(sequence)) {
      const bool itself = running_.back() == &sequence;
      check(!itself || running_.size() > 1, "a sequence fits the pool alone");
      preempt_newest();
      if (itself) return false;
    }
  }
  return true;
}

bool Scheduler::take_one_more(Sequence& sequence) {
  if (pool_.n_free() == 0 || (window_ != nullptr && !window_->grow(sequence))) return false;
  sequence.blocks.push_back(take_block());
  return true;
}

void Scheduler::preempt_newest() {
  Sequence& newest = *running_.back();
  running_.pop_back();
  release_blocks(newest);
  waiting_.add_first(newest);
  n_preemptions_++;
}

// From the end, so that the beginnings, which others are likelier to want again, are overwritten last, and no block is
// while one that follows it can be found.
void Scheduler::release_blocks(Sequence& sequence) {
  while (!sequence.blocks.empty()) {
    pool_.release(sequence.blocks.back());
    sequence.blocks.pop_back();
  }
  if (window_ != nullptr) window_->release(sequence);
  sequence.n_computed = 0;
}

// What it has computed is in the index as what it is, and what it will write to is its own.
void Scheduler::audit_prefix(const Sequence& sequence) const {
  const std::span<const TokenId> tokens(sequence.tokens);
  check(tokens.size() == static_cast<size_t>(sequence.n_tokens), "a sequence has the tokens it counts");
  const auto n_full = static_cast<size_t>(sequence.n_computed / model::kBlockTokens);
  for (size_t i = 0; i < sequence.blocks.size(); i++) {
    const BlockId block = sequence.blocks[i], parent = i == 0 ? PrefixIndex::kNone : sequence.blocks[i - 1];
    if (i < n_full) {
      const auto content = tokens.subspan(i * model::kBlockTokens).first<model::kBlockTokens>();
      check(index_->holds(block, sequence.salt, parent, content), "a full block is in the index with its content");
    } else {
      check(!index_->contains(block) && pool_.references(block) == 1, "a block that is written to has one holder");
    }
  }
}

void Scheduler::audit() const {
  pool_.audit();
  if (index_ != nullptr) index_->audit();
  if (window_ != nullptr) window_->audit(running_, index_ != nullptr);
  std::vector<int> held(static_cast<size_t>(pool_.n_blocks()), 0);
  for (const Sequence* sequence : running_) {
    check(sequence->n_computed <= sequence->n_tokens, "nothing is computed that isn't known");
    check(blocks_for(sequence->n_computed) <= static_cast<int>(sequence->blocks.size()), "what is computed has blocks");
    for (const BlockId block : sequence->blocks) held[static_cast<size_t>(block)]++;
    if (index_ != nullptr) audit_prefix(*sequence);
  }
  for (const Sequence* sequence : waiting_.all())
    check(sequence->blocks.empty() && sequence->window_blocks.empty() && sequence->n_computed == 0,
          "who waits holds nothing");
  check(std::ranges::is_sorted(running_, {}, &Sequence::priority), "the most urgent run first");
  check(n_running() + n_waiting() > 0 || turns_.n_owners() == 0, "an owner has sequences");
  for (BlockId block = 0; block < pool_.n_blocks(); block++)
    check(pool_.references(block) == held[static_cast<size_t>(block)], "a block is held by the tables that list it");
}

}  // namespace unisono::engine

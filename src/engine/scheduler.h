// Who takes part in the next step, with how many tokens, who gives way when blocks run out, and which blocks are shared.
// Works on counters and blocks; passes tokens to the index, and knows no text and no clock.
#pragma once

#include <span>
#include <vector>

#include "engine/block_pool.h"
#include "engine/prefix_index.h"
#include "engine/sequence.h"
#include "engine/waiting_queue.h"
#include "engine/window_blocks.h"

namespace unisono::engine {

struct SchedulerLimits {
  int token_budget = 512;  // rows of one step
  int max_running = 64;    // sequences that hold blocks; cut to the token budget, so that each can have a row in every step
  int score_rows = 64;     // rows of one step with logits beyond the last one of each sequence
  int attention_unit = 0;  // model::Model::attention_unit(); 0: attention is as if it took no time
};

struct PlanItem {
  Sequence* sequence = nullptr;
  int n_rows = 0;  // computes [n_computed, n_computed + n_rows), for which it has blocks
};

class Scheduler {
 public:
  // Without an index nothing is shared; without window blocks all layers' keys and values are in the pool's. All must
  // outlive the scheduler, and nobody else may change them.
  Scheduler(BlockPool& pool, const SchedulerLimits& limits, PrefixIndex* index = nullptr, WindowBlocks* window = nullptr);

  // To the end of its queue. It must fit the pool alone, at its longest. The sequence outlives its time here.
  void add(Sequence& sequence);
  // Out of the running or the queue; its blocks are released.
  void remove(Sequence& sequence);

  // The next step, valid until the next call of any function here.
  // Running sequences with one pending token come first, each with it, so that a long prompt never holds them up. What is
  // left of the budget goes to prompts in turn (where there are such sequences, to whom the step's time matters, a prompt's
  // token counts for more the more context it attends to): to those of the lowest priority number first, among these to the owner
  // whose turn is longest ago, of its own to the oldest. One that waits is admitted in its turn while blocks allow, with
  // the blocks of its beginning that the index has, but for the last token, whose logits are wanted, and for prompt tokens
  // whose log-probabilities are. When a running sequence needs a block and none is free, or a more urgent one waits for
  // room that there would be then, the newest of the lowest urgency gives way: its blocks are released, it waits ahead of
  // its equals and computes its tokens again later.
  std::span<const PlanItem> plan();
  // The step was computed: advances the counters, and enters the blocks that became full in the index. Where another has
  // the same content, the sequence goes on with that one. The caller adds the chosen tokens to n_tokens.
  void commit();

  int n_running() const { return static_cast<int>(running_.size()); }
  int n_waiting() const { return waiting_.size(); }
  uint64_t n_preemptions() const { return n_preemptions_; }
  // Tokens of sequences when they were first admitted: looked up, and found.
  uint64_t prefix_queries() const { return prefix_queries_; }
  uint64_t prefix_hits() const { return prefix_hits_; }

  // Recounts: every held block belongs to exactly the tables that hold it; check()s that all agree.
  void audit() const;

 private:
  void make_room();
  void plan_single_tokens();
  void plan_prompts();
  bool fits(const Sequence& sequence, int n_staying);
  void admit(Sequence& sequence);
  void find_prefix(const Sequence& sequence);
  void start(Sequence& sequence);
  void plan_chunk(Sequence& sequence);
  void plan_rows(Sequence& sequence, int n_rows);
  void enter_full_blocks(Sequence& sequence, int n_before);
  BlockId take_block();
  bool grow(Sequence& sequence);
  bool take_one_more(Sequence& sequence);
  void preempt_newest();
  void release_blocks(Sequence& sequence);
  void audit_prefix(const Sequence& sequence) const;

  BlockPool& pool_;
  const SchedulerLimits limits_;
  PrefixIndex* const index_;          // or null
  WindowBlocks* const window_;        // or null
  std::vector<Sequence*> running_{};  // by priority, then oldest first; all hold blocks
  WaitingQueue waiting_{};            // hold none
  Turns turns_{};
  uint64_t n_arrivals_ = 0;
  std::vector<PlanItem> plan_{};
  std::vector<Sequence*> prompts_{};  // running, with more than one pending token and not in the plan yet
  std::vector<BlockId> found_{};      // the prefix of who is about to be admitted
  std::vector<int> leaving_;          // [blocks] references that would be given back; 0 but while fits() counts
  int budget_left_ = 0, score_rows_left_ = 0;
  bool others_wait_ = false;  // for the step at hand, with one token each
  uint64_t n_preemptions_ = 0, prefix_queries_ = 0, prefix_hits_ = 0;
};

}  // namespace unisono::engine

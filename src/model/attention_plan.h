// Which attention a step computes in which pieces, when panels are dealt to the threads (deal.h): pieces of about equal work
// that threads take as they get free. Splits whose blocks several sequences share are one piece for all of them, so that
// shared keys and values are read once. Decides only who computes what, never a result's bits.
#pragma once

#include <span>
#include <vector>

#include "model/batch.h"
#include "model/deal.h"
#include "model/shared_prefixes.h"

namespace unisono::model {

// Some rows against one kv head, over splits [begin, end) of a context whose blocks are theirs all.
struct AttentionJob {
  int first_row = 0, n_rows = 0;  // in AttentionPlan::rows
  int kv_head = 0;
  int begin = 0, end = 0;
};

struct AttentionPlan {
  std::vector<AttentionJob> jobs{};  // the dearest first
  std::vector<int> rows{};           // buffer rows of the jobs
  // 0: each job folds all its splits. Else the states of each split are kept apart and folded in order afterwards; so many
  // splits at most.
  int apart = 0;
};

// Reuses the memory of `plan`. group: query heads of a kv head. window: 0, for layers that go by the block table; else for
// those with window blocks, which see so many positions: nothing is shared, nothing done for splits behind the window.
// state_bytes: of one row's states of one split; where states kept apart would take more than 64 MiB, nothing is shared or cut.
void make_plan(const Batch& batch, const SharedPrefixes& prefixes, const Deal& deal, int workers, int n_kv_heads, int group,
               int window, size_t state_bytes, AttentionPlan& plan);

}  // namespace unisono::model

// One sequence as the scheduler sees it: counters and a block table. There are no phases: prefill, decode and recomputing
// after preemption are all n_computed < n_tokens.
#pragma once

#include <vector>

#include "engine/block_pool.h"
#include "model/batch.h"

namespace unisono::engine {

//   0              n_computed                    n_tokens
//   | keys and values stored | known, to compute  |            each step computes [n_computed, n_computed + rows)
struct Sequence {
  int n_tokens = 0;               // known: the prompt, then what was chosen
  int n_computed = 0;             // of them, with keys and values in the blocks
  int score_until = 0;            // positions below want logits for each row (prompt log-probabilities)
  std::vector<BlockId> blocks{};  // block b holds positions [16 b, 16 b + 16)

  int pending() const { return n_tokens - n_computed; }
};

inline int blocks_for(int positions) { return (positions + model::kBlockTokens - 1) / model::kBlockTokens; }

}  // namespace unisono::engine

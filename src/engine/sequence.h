// One sequence as the scheduler sees it: counters, a block table, and the tokens by which blocks are found again. There are
// no phases: prefill, decode, a found prefix and recomputing after preemption are all n_computed < n_tokens.
#pragma once

#include <optional>
#include <string_view>
#include <vector>

#include "engine/block_pool.h"
#include "engine/request.h"
#include "model/batch.h"

namespace unisono::engine {

struct Owner;

//   0              n_computed                    n_tokens
//   | keys and values stored | known, to compute  |            each step computes [n_computed, n_computed + rows)
struct Sequence {
  int n_tokens = 0;               // known: the prompt, then what was chosen
  int n_computed = 0;             // of them, with keys and values in the blocks
  int score_until = 0;            // positions below want logits for each row (prompt log-probabilities)
  int n_scored = 0;               // of them, the ones that have had theirs
  std::vector<BlockId> blocks{};  // block b holds positions [16 b, 16 b + 16)
  // Of layers with a window, where they have blocks of their own: the first n_passed were given back, and read -1.
  std::vector<BlockId> window_blocks{};
  int n_passed = 0;
  std::vector<TokenId> tokens{};  // n_tokens of them; not read by a scheduler without an index
  std::string_view salt{};        // prefixes are shared under equal salts only
  int priority = 0;               // lower is sooner
  std::string_view owner{};       // those of one priority take turns by owner
  std::optional<int> n_cached{};  // positions whose keys and values were there when it was first admitted

  // The scheduler's own, between add() and remove().
  Owner* turn = nullptr;
  uint64_t arrival = 0;
  int window_promise = 0;  // window blocks it may count on

  int pending() const { return n_tokens - n_computed; }
};

using model::blocks_for;

}  // namespace unisono::engine

// Which sequences of a step begin with the same blocks, in whole splits of attention: what is read once for all of them
// (attention_plan.h).
#pragma once

#include <cstdint>
#include <vector>

#include "model/batch.h"

namespace unisono::model {

struct SharedPrefixes {
  std::vector<int> order{};   // sequences, those with the same leading blocks side by side
  std::vector<int> common{};  // [i] leading splits that sequences order[i - 1] and order[i] share
  std::vector<int> shared{};  // [sequence] leading splits that it shares with any other

  // Positions that need not be read again, over all sequences.
  int64_t saved_positions() const;
};

// Reuses the memory of `prefixes`.
void find_shared(const Batch& batch, SharedPrefixes& prefixes);

}  // namespace unisono::model

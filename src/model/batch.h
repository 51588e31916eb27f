// The flat arrays of one step: everything forward() may know. No request, no phase: a sequence gives one token (decode),
// some (a prefill chunk), or many.
#pragma once

#include <cstdint>
#include <span>

namespace unisono::model {

inline constexpr int kBlockTokens = 16;  // positions in a block of the key/value store
inline int blocks_for(int positions) { return (positions + kBlockTokens - 1) / kBlockTokens; }

// One sequence's part of a step.
struct BatchSequence {
  int32_t first_row = 0;                  // its tokens are rows [first_row, first_row + n_rows) of the batch
  int32_t n_rows = 0;                     // at least 1
  int32_t first_position = 0;             // position of its first token; the others follow
  std::span<const int32_t> block_table{}; // block b holds positions [16 b, 16 b + 16); covers all its positions
  // The same for layers whose blocks are their own (kv_store.h): entries before the first position seen are never read.
  std::span<const int32_t> window_table{};
};

struct Batch {
  std::span<const int32_t> tokens{};           // [rows] token ids, each inside the vocabulary
  std::span<const BatchSequence> sequences{};  // in order of first_row, without gaps
  std::span<const int32_t> logits_rows{};      // [outputs] rows whose logits are wanted, ascending
};

}  // namespace unisono::model

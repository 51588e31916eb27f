#include "model/wanted_rows.h"

#include <numeric>

namespace unisono::model {

const Batch& WantedRows::of(const Batch& batch) {
  rows_.resize(batch.logits_rows.size());
  std::iota(rows_.begin(), rows_.end(), 0);
  sequences_.clear();
  size_t i = 0;
  for (const BatchSequence& seq : batch.sequences)
    for (int last = -1; i < rows_.size() && batch.logits_rows[i] < seq.first_row + seq.n_rows; i++) {
      const int row = batch.logits_rows[i];
      if (last < 0 || row != last + 1) {
        sequences_.push_back(seq);
        sequences_.back().first_row = rows_[i];
        sequences_.back().n_rows = 0;
        sequences_.back().first_position = seq.first_position + row - seq.first_row;
      }
      sequences_.back().n_rows++;
      last = row;
    }
  wanted_ = {.tokens = {}, .sequences = sequences_, .logits_rows = rows_};
  return wanted_;
}

}  // namespace unisono::model

// What is left of a step once the last layer has its keys and values: the rows whose logits are wanted. Of a chunk inside a
// prompt that is none, of a prompt's end one.
#pragma once

#include <cstdint>
#include <vector>

#include "model/batch.h"

namespace unisono::model {

class WantedRows {
 public:
  // Row i is row batch.logits_rows[i] of `batch`, in sequences of consecutive ones; has no tokens. Views batch's tables, and
  // stays until the next call.
  const Batch& of(const Batch& batch);

 private:
  Batch wanted_{};
  std::vector<BatchSequence> sequences_{};
  std::vector<int32_t> rows_{};
};

}  // namespace unisono::model

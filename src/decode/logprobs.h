// Log-probabilities of the model's own distribution, before any decoding rule.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "decode/select.h"

namespace unisono::decode {

struct LogprobScratch {
  std::vector<float> weights{};
  std::vector<double> block_sums{};
};

// What turns a row's logits into log-probabilities, each with an absolute error below 5e-7 plus the rounding to f32.
class LogSoftmax {
 public:
  // logits [vocab]; NaN counts as minus infinity, plus infinity as the largest number.
  LogSoftmax(std::span<const float> logits, LogprobScratch& scratch);

  // False: every logit is NaN or minus infinity, and every log-probability minus infinity.
  bool valid() const { return valid_; }
  float of(float logit) const;

 private:
  bool valid_ = false;
  float best_ = 0;
  double log_sum_ = 0;  // of exp(logit - best)
};

// The n most likely tokens with their log-probabilities (as `score`), best first; those of probability 0 are left out.
// Replaces what `out` holds.
void top_logprobs(std::span<const float> logits, const LogSoftmax& softmax, size_t n, std::vector<Scored>& out);

}  // namespace unisono::decode

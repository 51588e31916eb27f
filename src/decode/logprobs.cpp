#include "decode/logprobs.h"

#include <algorithm>
#include <limits>

#include "decode/chain.h"
#include "decode/exact_math.h"

namespace unisono::decode {

LogSoftmax::LogSoftmax(std::span<const float> logits, LogprobScratch& scratch) {
  const Scored top = best(logits);
  if (top.id < 0) return;
  valid_ = true;
  best_ = std::min(top.score, std::numeric_limits<float>::max());
  scratch.weights.resize(logits.size());
  weigh(logits, best_, 1.0f, scratch.weights);
  log_sum_ = log_at_least_one(sum(scratch.weights, scratch.block_sums));
}

float LogSoftmax::of(float logit) const {
  constexpr float kImpossible = -std::numeric_limits<float>::infinity();
  if (!valid_ || !(logit > kImpossible)) return kImpossible;
  const double below = static_cast<double>(std::min(logit, std::numeric_limits<float>::max())) - static_cast<double>(best_);
  return static_cast<float>(below - log_sum_);
}

void top_logprobs(std::span<const float> logits, const LogSoftmax& softmax, size_t n, std::vector<Scored>& out) {
  select_best(logits, n, out);
  std::sort(out.begin(), out.end(), better);
  for (Scored& entry : out) entry.score = softmax.of(entry.score);
}

}  // namespace unisono::decode

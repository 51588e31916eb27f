// The steps from scores to a choice, each a small function on dense arrays in ascending id order. A weight is a probability
// up to a common factor; the best one is 1, and 0 is removed. No step sorts, and every sum has one fixed order.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

namespace unisono::decode {

inline constexpr size_t kSumBlock = 256;  // weights a partial sum covers

// Reused memory of the steps below.
struct ChainScratch {
  std::vector<double> block_sums{};
  std::vector<double> bucket_mass{};
  std::vector<float> candidates{};
};

// weights[i] = exp((scores[i] - best) / temperature), temperature > 0. `best` is the highest score, above minus infinity;
// NaN gives 0, plus infinity counts as the largest number.
void weigh(std::span<const float> scores, float best, float temperature, std::span<float> weights);

// The sum, partial sums in fixed order left in `block_sums`.
double sum(std::span<const float> weights, std::vector<double>& block_sums);

// Keeps the fewest best weights that hold at least p of the total, of equal ones the first. 0 < p < 1.
void keep_top_p(std::span<float> weights, float p, ChainScratch& scratch);

// Keeps what is at least min_p times the best, which is 1.
void keep_min_p(std::span<float> weights, float min_p);

// The place where u, in [0, 1), falls when the weights are laid end to end: the inverse of their distribution function.
// At least one weight is positive.
size_t choose(std::span<const float> weights, double u, ChainScratch& scratch);

}  // namespace unisono::decode

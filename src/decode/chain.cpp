#include "decode/chain.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>
#include <limits>

#include "base/check.h"
#include "decode/exact_math.h"

namespace unisono::decode {

namespace {

constexpr size_t kLanes = 8;
constexpr size_t kChunk = 64;

// Lane j adds the elements j, j + 8, ...; the lanes are added in order.
double block_sum(const float* w, size_t n) {
  double lanes[kLanes] = {};
  size_t i = 0;
  for (; i + kLanes <= n; i += kLanes)
    for (size_t j = 0; j < kLanes; j++) lanes[j] += static_cast<double>(w[i + j]);
  for (size_t j = 0; i < n; i++, j++) lanes[j] += static_cast<double>(w[i]);
  double total = 0;
  for (const double lane : lanes) total += lane;
  return total;
}

// Copies the weights of at least `floor`, in order; chunks without any are rejected as a whole.
void collect(std::span<const float> weights, float floor, std::vector<float>& out) {
  out.clear();
  if (out.capacity() < weights.size()) out.reserve(weights.size());
  for (size_t begin = 0; begin < weights.size(); begin += kChunk) {
    const size_t end = std::min(begin + kChunk, weights.size());
    int hit = 0;
    for (size_t i = begin; i < end; i++) hit |= weights[i] >= floor;
    if (!hit) continue;
    for (size_t i = begin; i < end; i++)
      if (weights[i] >= floor) out.push_back(weights[i]);
  }
}

// Where a nucleus ends: weights above `cut` are in, and of those equal to it the first `n_equal`.
struct Cut {
  float cut = 0;
  size_t n_equal = 0;
};

// A radix selection by mass: positive floats are ordered as their bits are, so three passes of 12, 10 and 10 bits close in
// on the weight at which the mass from the top reaches `target`.
Cut find_cut(std::span<const float> candidates, double target, std::vector<double>& mass) {
  constexpr std::array<int, 3> kShift{20, 10, 0}, kBits{12, 10, 10};
  double above = 0;
  uint32_t prefix = 0, known = 0;
  for (size_t level = 0; level < kShift.size(); level++) {
    const uint32_t width = uint32_t{1} << kBits[level];
    mass.assign(width, 0.0);
    uint32_t top = 0;
    for (const float w : candidates) {
      const uint32_t bits = std::bit_cast<uint32_t>(w);
      if ((bits & known) != prefix) continue;
      const uint32_t bucket = (bits >> kShift[level]) & (width - 1);
      mass[bucket] += static_cast<double>(w);
      top = std::max(top, bucket);
    }
    // Rounding may leave the sum short of the target: then the lowest bucket that holds something is the one.
    uint32_t found = top;
    double before = above;
    for (uint32_t bucket = top + 1; bucket-- > 0;) {
      if (mass[bucket] == 0.0) continue;
      found = bucket;
      before = above;
      above += mass[bucket];
      if (above >= target) break;
    }
    above = before;
    prefix |= found << kShift[level];
    known |= (width - 1) << kShift[level];
  }
  Cut cut{std::bit_cast<float>(prefix), 0};
  do {
    cut.n_equal++;
    above += static_cast<double>(cut.cut);
  } while (above < target && cut.n_equal < candidates.size());
  return cut;
}

}  // namespace

void weigh(std::span<const float> scores, float best, float temperature, std::span<float> weights) {
  check(scores.size() == weights.size(), "weights for each score");
  constexpr float kMost = std::numeric_limits<float>::max();
  const float top = std::min(best, kMost);
  // Bounded, so that 0 * inverse is 0 for the smallest temperatures too; for the largest it is 0.
  const float inverse = std::min(1.0f / temperature, 1e30f);
  for (size_t i = 0; i < scores.size(); i++) weights[i] = exp_nonpositive((std::min(scores[i], kMost) - top) * inverse);
}

double sum(std::span<const float> weights, std::vector<double>& block_sums) {
  block_sums.clear();
  double total = 0;
  for (size_t begin = 0; begin < weights.size(); begin += kSumBlock) {
    block_sums.push_back(block_sum(weights.data() + begin, std::min(kSumBlock, weights.size() - begin)));
    total += block_sums.back();
  }
  return total;
}

void keep_top_p(std::span<float> weights, float p, ChainScratch& scratch) {
  const double total = sum(weights, scratch.block_sums);
  // All weights below this together hold less than 1 - p of the mass, so what is at or above it holds the nucleus.
  const double floor = (1.0 - static_cast<double>(p)) * total / static_cast<double>(weights.size()) * 0.999;
  collect(weights, std::max(static_cast<float>(floor), std::numeric_limits<float>::min()), scratch.candidates);
  Cut cut = find_cut(scratch.candidates, static_cast<double>(p) * total, scratch.bucket_mass);
  const float bar = cut.cut;
  for (float& w : weights) w = w >= bar ? w : 0.0f;
  for (float& w : weights) {
    if (w != bar) continue;
    if (cut.n_equal == 0) w = 0.0f;
    if (cut.n_equal > 0) cut.n_equal--;
  }
}

void keep_min_p(std::span<float> weights, float min_p) {
  for (float& w : weights) w = w >= min_p ? w : 0.0f;
}

size_t choose(std::span<const float> weights, double u, ChainScratch& scratch) {
  const double target = u * sum(weights, scratch.block_sums);
  double before = 0;
  size_t last_positive = weights.size();
  for (size_t block = 0; block < scratch.block_sums.size(); block++) {
    const double after = before + scratch.block_sums[block];
    const bool last = block + 1 == scratch.block_sums.size();
    const size_t begin = block * kSumBlock, end = std::min(begin + kSumBlock, weights.size());
    if (after <= target && !last) {
      before = after;
      continue;
    }
    for (size_t i = begin; i < end; i++) {
      if (weights[i] > 0) last_positive = i;
      before += static_cast<double>(weights[i]);
      if (before > target && weights[i] > 0) return i;
    }
    if (last_positive < weights.size()) return last_positive;  // rounding left the end of the block short of the target
  }
  // Rounding at the very end: the last weight that isn't 0.
  for (size_t i = weights.size(); i-- > 0;)
    if (weights[i] > 0) return i;
  check(false, "a choice needs a positive weight");
  return 0;
}

}  // namespace unisono::decode

#include "decode/select.h"

#include <algorithm>
#include <limits>

namespace unisono::decode {

namespace {

constexpr size_t kChunk = 64;
constexpr float kNothing = -std::numeric_limits<float>::infinity();

bool any_above(const float* v, size_t n, float bar) {
  int hit = 0;
  for (size_t i = 0; i < n; i++) hit |= v[i] > bar;  // false for NaN
  return hit != 0;
}

// Calls take(score, id) in ascending id for scores above `bar`, which take may raise. Most chunks are rejected as a whole.
template <class Take>
void scan_above(std::span<const float> scores, const float& bar, Take take) {
  for (size_t begin = 0; begin < scores.size(); begin += kChunk) {
    const size_t n = std::min(kChunk, scores.size() - begin);
    if (n == kChunk ? !any_above(scores.data() + begin, kChunk, bar) : !any_above(scores.data() + begin, n, bar)) continue;
    for (size_t i = begin; i < begin + n; i++)
      if (scores[i] > bar) take(scores[i], static_cast<int32_t>(i));
  }
}

}  // namespace

Scored best(std::span<const float> scores) {
  Scored found{kNothing, -1};
  scan_above(scores, found.score, [&](float score, int32_t id) { found = {score, id}; });
  return found;
}

void select_best(std::span<const float> scores, size_t k, std::vector<Scored>& out) {
  out.clear();
  if (k == 0) return;
  k = std::min(k, scores.size());
  const size_t room = k + std::max<size_t>(k, 64);
  if (out.capacity() < room) out.reserve(room);
  float bar = kNothing;
  const auto keep_best = [&] {
    std::nth_element(out.begin(), out.begin() + static_cast<ptrdiff_t>(k) - 1, out.end(), better);
    out.resize(k);
    bar = out.back().score;  // ids ascend, so an equal score that comes later loses
  };
  scan_above(scores, bar, [&](float score, int32_t id) {
    out.push_back({score, id});
    if (out.size() == room) keep_best();
  });
  if (out.size() > k) keep_best();
}

}  // namespace unisono::decode

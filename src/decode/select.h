// The best of a row without sorting it: greedy's one, top-k's k. NaN counts as minus infinity, and minus infinity is never
// selected. Knows no probabilities.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace unisono::decode {

struct Scored {
  float score = 0;
  int32_t id = 0;
};

// The one order of this room: higher scores first, of equal scores the lower id.
inline bool better(const Scored& a, const Scored& b) { return a.score > b.score || (a.score == b.score && a.id < b.id); }

// The best, or id -1 when no score is above minus infinity.
Scored best(std::span<const float> scores);

// The k best in unspecified order, fewer when fewer are above minus infinity. Replaces what `out` holds.
void select_best(std::span<const float> scores, size_t k, std::vector<Scored>& out);

}  // namespace unisono::decode

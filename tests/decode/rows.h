// Random rows of logits for the tests of this room.
#pragma once

#include <cstdint>
#include <limits>
#include <random>
#include <vector>

namespace unisono::decode {

// Normal scores, as a model's are; `ties` draws from few values, `holes` puts NaN and minus infinity among them.
inline std::vector<float> random_row(std::mt19937& rng, size_t n, float spread, bool ties = false, bool holes = false) {
  std::normal_distribution<float> normal(0, spread);
  std::vector<float> row(n);
  for (float& v : row) {
    v = normal(rng);
    if (ties) v = static_cast<float>(static_cast<int>(v));
    if (holes && rng() % 7 == 0)
      v = rng() % 2 ? std::numeric_limits<float>::quiet_NaN() : -std::numeric_limits<float>::infinity();
  }
  return row;
}

}  // namespace unisono::decode

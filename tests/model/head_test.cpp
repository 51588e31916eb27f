// Which logits the output head refines.
#include "model/head.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

namespace unisono::model {
namespace {

int reaching(const std::vector<float>& peaks, float threshold) {
  return static_cast<int>(std::ranges::count_if(peaks, [&](float p) { return p >= threshold; }));
}

TEST(RefiningThreshold, IsNearTheThirtySecondBest) {
  std::mt19937 random(1);
  for (const float width : {0.5f, 3.0f, 40.0f}) {
    std::vector<float> peaks(3000);
    for (float& p : peaks) p = width * std::normal_distribution<float>()(random);
    const float threshold = refining_threshold(peaks);
    const float best = *std::ranges::max_element(peaks);
    EXPECT_GE(reaching(peaks, threshold), 1);
    EXPECT_LE(reaching(peaks, threshold), 32);
    EXPECT_GE(threshold, best - 16);
    if (reaching(peaks, best - 16) > 32) {
      EXPECT_GT(reaching(peaks, threshold - 16.0f / 512), 24) << "far fewer than it may";
    }
    std::ranges::shuffle(peaks, random);
    EXPECT_EQ(refining_threshold(peaks), threshold);
  }
}

TEST(RefiningThreshold, TakesAllWithinReachWhereTheyAreFew) {
  std::vector<float> peaks(500, -100.0f);
  peaks[7] = 3;
  peaks[400] = -12;
  EXPECT_EQ(refining_threshold(peaks), 3.0f - 16);
  EXPECT_EQ(reaching(peaks, refining_threshold(peaks)), 2);
}

TEST(RefiningThreshold, EqualPeaksAreAllOrTheBest) {
  EXPECT_EQ(refining_threshold(std::vector<float>(8, 2.0f)), 2.0f - 16);
  EXPECT_EQ(refining_threshold(std::vector<float>(800, 2.0f)), 2.0f);
}

}  // namespace
}  // namespace unisono::model

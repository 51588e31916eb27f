#include "decode/logprobs.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "decode/rows.h"

namespace unisono::decode {
namespace {

double log_sum_exp(const std::vector<float>& row) {
  long double total = 0;
  for (const float v : row)
    if (v > -INFINITY) total += std::exp(static_cast<long double>(v));
  return static_cast<double>(std::log(total));
}

TEST(Logprobs, StayWithinTheirStatedError) {
  std::mt19937 rng(6);
  LogprobScratch scratch;
  for (int round = 0; round < 200; round++) {
    const auto row = random_row(rng, 1 + rng() % 5000, 1 + static_cast<float>(round % 9), false, round % 2 == 0);
    const LogSoftmax softmax(row, scratch);
    if (!softmax.valid()) continue;
    const double normaliser = log_sum_exp(row);
    for (const float v : row) {
      if (!(v > -INFINITY)) {
        ASSERT_EQ(softmax.of(v), -INFINITY);
        continue;
      }
      const double truth = static_cast<double>(v) - normaliser;
      ASSERT_NEAR(static_cast<double>(softmax.of(v)), truth, 5e-7 + std::abs(truth) * 0x1.0p-24);
    }
  }
}

TEST(Logprobs, TopAreTheBestWithTiesByLowestId) {
  std::mt19937 rng(7);
  LogprobScratch scratch;
  std::vector<Scored> top;
  for (int round = 0; round < 200; round++) {
    const auto row = random_row(rng, 400, 2, true, true);
    const LogSoftmax softmax(row, scratch);
    std::vector<Scored> truth;
    for (size_t i = 0; i < row.size(); i++)
      if (row[i] > -INFINITY) truth.push_back({row[i], static_cast<int32_t>(i)});
    std::sort(truth.begin(), truth.end(), better);
    top_logprobs(row, softmax, 20, top);
    ASSERT_EQ(top.size(), 20u);
    for (size_t i = 0; i < top.size(); i++) {
      ASSERT_EQ(top[i].id, truth[i].id);
      ASSERT_EQ(top[i].score, softmax.of(truth[i].score));
    }
  }
}

TEST(Logprobs, NoDistribution) {
  LogprobScratch scratch;
  const std::vector<float> row{NAN, -INFINITY};
  const LogSoftmax softmax(row, scratch);
  EXPECT_FALSE(softmax.valid());
  EXPECT_EQ(softmax.of(1.0f), -INFINITY);
  std::vector<Scored> top;
  top_logprobs(row, softmax, 3, top);
  EXPECT_TRUE(top.empty());
}

TEST(Logprobs, InfinityTakesAll) {
  LogprobScratch scratch;
  const std::vector<float> row{0, INFINITY, 1};
  const LogSoftmax softmax(row, scratch);
  EXPECT_EQ(softmax.of(row[1]), 0.0f);
}

}  // namespace
}  // namespace unisono::decode

#include "decode/penalties.h"

#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <random>

namespace unisono::decode {
namespace {

TEST(Penalties, CountsEqualAMap) {
  std::mt19937 rng(5);
  TokenCounts counts(3000);
  std::map<int32_t, int> truth;
  for (int i = 0; i < 3000; i++) {
    const auto id = static_cast<int32_t>(rng() % 700);
    if (i < 1000) {
      counts.add_prompt(id);
      truth[id] += 0;
    } else {
      counts.add_answer(id);
      truth[id]++;
    }
  }
  std::map<int32_t, int> got;
  for (const auto& e : counts.entries()) got[e.id] = e.in_answer;
  EXPECT_EQ(got, truth);
}

TEST(Penalties, RepetitionCoversPromptAndAnswerOnce) {
  TokenCounts counts(8);
  counts.add_prompt(0);
  counts.add_prompt(1);
  counts.add_answer(2);
  counts.add_answer(2);
  std::vector<float> scores{4, -4, 8, 4};
  apply_penalties(scores, {.repetition_penalty = 2}, counts);
  EXPECT_EQ(scores, (std::vector<float>{2, -8, 4, 4}));
}

TEST(Penalties, FrequencyAndPresenceCoverTheAnswerOnly) {
  TokenCounts counts(8);
  counts.add_prompt(0);
  counts.add_prompt(1);
  counts.add_answer(1);
  counts.add_answer(2);
  counts.add_answer(2);
  std::vector<float> scores{1, 1, 1, 1};
  apply_penalties(scores, {.frequency_penalty = 0.5f, .presence_penalty = 0.25f}, counts);
  EXPECT_EQ(scores, (std::vector<float>{1, 0.25f, -0.25f, 1}));
}

TEST(Penalties, ABanBeatsABias) {
  std::vector<float> scores{1, 1, 1};
  const std::vector<std::pair<int32_t, float>> bias{{0, 2.0f}, {1, 100.0f}};
  apply_bias(scores, bias);
  apply_bans(scores, std::vector<int32_t>{1});
  EXPECT_EQ(scores, (std::vector<float>{3, -INFINITY, 1}));
}

}  // namespace
}  // namespace unisono::decode

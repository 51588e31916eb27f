#include "decode/sampler.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "base/philox.h"
#include "base/thread_team.h"
#include "decode/rows.h"

namespace unisono::decode {
namespace {

int32_t sample_or_fail(const std::vector<float>& row, const SamplingParams& params, uint64_t position,
                       SamplerScratch& scratch) {
  const auto id = sample({.logits = row, .position = position}, params, scratch);
  EXPECT_TRUE(id.has_value());
  return id.value_or(-1);
}

struct Entry {
  double p;
  int32_t id;
};

// The documented order in double, by full sorts. Probabilities of what is left, in id order; `margin` falls to the smallest
// distance of any decision from its border.
std::vector<Entry> reference(const std::vector<float>& row, const SamplingParams& params, double& margin) {
  std::vector<Entry> left;
  double top = -INFINITY;
  for (const float v : row)
    if (!std::isnan(v)) top = std::max(top, static_cast<double>(v));
  for (size_t i = 0; i < row.size(); i++)
    if (row[i] > -INFINITY)
      left.push_back({std::exp((static_cast<double>(row[i]) - top) / static_cast<double>(params.temperature)),
                      static_cast<int32_t>(i)});
  std::sort(left.begin(), left.end(), [&](const Entry& a, const Entry& b) {
    const float x = row[static_cast<size_t>(a.id)], y = row[static_cast<size_t>(b.id)];
    return x > y || (x == y && a.id < b.id);
  });
  if (params.top_k > 0 && left.size() > static_cast<size_t>(params.top_k)) left.resize(static_cast<size_t>(params.top_k));
  const auto mass = [&] {
    return std::accumulate(left.begin(), left.end(), 0.0, [](double s, Entry e) { return s + e.p; });
  };
  if (params.top_p < 1) {
    const double target = static_cast<double>(params.top_p) * mass();
    double sum = 0;
    size_t n = 0;
    while (n < left.size() && sum < target) {
      sum += left[n++].p;
      margin = std::min(margin, std::abs(sum - target) / target);
    }
    left.resize(n);
  }
  std::erase_if(left, [&](const Entry& e) {
    margin = std::min(margin, std::abs(e.p - static_cast<double>(params.min_p)));
    return e.p < static_cast<double>(params.min_p);
  });
  std::sort(left.begin(), left.end(), [](const Entry& a, const Entry& b) { return a.id < b.id; });
  const double total = mass();
  for (Entry& e : left) e.p /= total;
  return left;
}

TEST(Sampler, EqualsTheDocumentedOrder) {
  std::mt19937 rng(8);
  SamplerScratch scratch;
  int compared = 0;
  for (int round = 0; round < 4000; round++) {
    const auto row = random_row(rng, 2 + rng() % 600, 2.5f, round % 4 == 0, round % 3 == 0);
    if (best(row).id < 0) continue;
    SamplingParams params{.temperature = std::uniform_real_distribution<float>(0.2f, 2)(rng), .seed = rng()};
    if (rng() % 2) params.top_k = static_cast<int>(1 + rng() % 80);
    if (rng() % 2) params.top_p = std::uniform_real_distribution<float>(0.05f, 1)(rng);
    if (rng() % 2) params.min_p = std::uniform_real_distribution<float>(0, 0.5f)(rng);
    double margin = 1;
    const auto left = reference(row, params, margin);
    const uint64_t position = rng() % 100000;
    const double u = philox_uniform(params.seed, 0, position);
    int32_t truth = -1;
    double sum = 0;
    for (const Entry& e : left) {
      sum += e.p;
      margin = std::min(margin, std::abs(sum - u));
      if (truth < 0 && sum > u) truth = e.id;
    }
    if (margin < 2e-5) continue;  // too near a border to be decided alike in f32
    compared++;
    ASSERT_EQ(sample_or_fail(row, params, position, scratch), truth) << "round " << round;
  }
  EXPECT_GT(compared, 3000);
}

TEST(Sampler, GreedyIsTemperatureZeroAndTopKOne) {
  std::mt19937 rng(9);
  SamplerScratch scratch;
  for (int round = 0; round < 300; round++) {
    const auto row = random_row(rng, 1 + rng() % 500, 2, true, true);
    const int32_t truth = best(row).id;
    if (truth < 0) continue;
    EXPECT_EQ(sample_or_fail(row, {.temperature = 0}, 1, scratch), truth);
    EXPECT_EQ(sample_or_fail(row, {.temperature = 1.5f, .top_k = 1}, 1, scratch), truth);
    EXPECT_EQ(sample_or_fail(row, {.temperature = 1.5f, .top_p = 1e-6f}, 1, scratch), truth);
    EXPECT_EQ(sample_or_fail(row, {.temperature = 1.5f, .top_k = 2, .top_p = 1e-6f}, 1, scratch), truth);
  }
}

TEST(Sampler, NoOpsChangeNothing) {
  std::mt19937 rng(10);
  SamplerScratch scratch;
  for (uint64_t position = 0; position < 500; position++) {
    const auto row = random_row(rng, 300, 2);
    const SamplingParams plain{.seed = 5};
    SamplingParams all = plain;
    all.top_k = 300;
    EXPECT_EQ(sample_or_fail(row, plain, position, scratch), sample_or_fail(row, all, position, scratch));
    // Biases of the same size for every token are a no-op up to rounding: a shift by a power of two is exact here.
    SamplingParams penalties = plain;
    penalties.frequency_penalty = 1;
    const TokenCounts none(1);
    EXPECT_EQ(sample({.logits = row, .counts = &none, .position = position}, penalties, scratch),
              sample({.logits = row, .position = position}, plain, scratch));
  }
}

TEST(Sampler, DependsOnSeedChoiceAndPositionOnly) {
  std::mt19937 rng(11);
  SamplerScratch used, fresh;
  const auto row = random_row(rng, 1000, 1);
  const SamplingParams params{.top_p = 0.9f, .seed = 77, .choice = 3};
  for (int i = 0; i < 50; i++)
    (void)sample_or_fail(random_row(rng, 1000, 3), {.top_k = 20}, static_cast<uint64_t>(i), used);
  std::vector<int32_t> a, b, other_choice, other_seed;
  for (uint64_t position = 0; position < 64; position++) {
    a.push_back(sample_or_fail(row, params, position, used));
    other_choice.push_back(sample_or_fail(row, {.top_p = 0.9f, .seed = 77, .choice = 4}, position, used));
    other_seed.push_back(sample_or_fail(row, {.top_p = 0.9f, .seed = 78, .choice = 3}, position, used));
  }
  for (uint64_t position = 64; position-- > 0;) b.push_back(sample_or_fail(row, params, position, fresh));
  std::reverse(b.begin(), b.end());
  EXPECT_EQ(a, b);
  EXPECT_NE(a, other_choice);
  EXPECT_NE(a, other_seed);
}

// Chi-square of 20,000 draws against the exact probabilities; the seed is fixed, so the statistic is one number.
TEST(Sampler, DrawsFollowTheDistribution) {
  std::mt19937 rng(12);
  SamplerScratch scratch;
  const auto row = random_row(rng, 60, 1.2f);
  for (const SamplingParams& params :
       {SamplingParams{.temperature = 1, .seed = 1}, SamplingParams{.temperature = 0.8f, .top_k = 20, .seed = 2},
        SamplingParams{.temperature = 1.3f, .top_p = 0.8f, .seed = 3}, SamplingParams{.min_p = 0.1f, .seed = 4},
        SamplingParams{.temperature = 0.9f, .top_k = 40, .top_p = 0.95f, .seed = 5}}) {
    double margin = 1;
    const auto left = reference(row, params, margin);
    constexpr int kDraws = 20000;
    std::vector<int> hits(row.size());
    for (int i = 0; i < kDraws; i++)
      hits[static_cast<size_t>(sample_or_fail(row, params, static_cast<uint64_t>(i), scratch))]++;
    double chi2 = 0;
    int inside = 0;
    for (const Entry& e : left) {
      const double expected = e.p * kDraws, d = hits[static_cast<size_t>(e.id)] - expected;
      chi2 += d * d / expected;
      inside += hits[static_cast<size_t>(e.id)];
    }
    EXPECT_EQ(inside, kDraws) << "something removed was drawn";
    const double freedom = static_cast<double>(left.size()) - 1;
    EXPECT_LT(chi2, freedom + 4 * std::sqrt(2 * freedom)) << "seed " << params.seed;
  }
}

TEST(Sampler, BiasAndBans) {
  SamplerScratch scratch;
  const std::vector<float> row{1, 2, 3, 0};
  SamplingParams greedy{.temperature = 0};
  const std::vector<int32_t> banned{2};
  EXPECT_EQ(sample({.logits = row, .banned = banned}, greedy, scratch), 1);
  greedy.logit_bias = {{3, 10.0f}};
  EXPECT_EQ(sample({.logits = row}, greedy, scratch), 3);
  greedy.logit_bias = {{2, 10.0f}};
  EXPECT_EQ(sample({.logits = row, .banned = banned}, greedy, scratch), 1);
}

TEST(Sampler, BiasComesBeforePenaltiesAndPenaltiesBeforeTemperature) {
  SamplerScratch scratch;
  TokenCounts counts(4);
  counts.add_answer(0);
  // (-1 + 3) / 2 = 1 < 1.2; with the penalty first it would be -1 * 2 + 3 = 1 too, so use a case that differs:
  // (-1 + 4) / 2 = 1.5 against -1 * 2 + 4 = 2.
  const std::vector<float> row{-1, 1.75f};
  SamplingParams params{.temperature = 0};
  params.logit_bias = {{0, 4.0f}};
  params.repetition_penalty = 2;
  EXPECT_EQ(sample({.logits = row, .counts = &counts}, params, scratch), 1);
  // Presence 1 on a gap of 0.5 inverts it at every temperature.
  const std::vector<float> close{0.5f, 0};
  SamplingParams presence{.temperature = 0.01f};
  presence.presence_penalty = 1;
  for (uint64_t position = 0; position < 50; position++)
    EXPECT_EQ(sample({.logits = close, .counts = &counts, .position = position}, presence, scratch), 1);
}

TEST(Sampler, NothingToChoose) {
  SamplerScratch scratch;
  const std::vector<float> nan{NAN, NAN}, one{NAN, 1};
  EXPECT_EQ(sample({.logits = nan}, {}, scratch), std::nullopt);
  EXPECT_EQ(sample({.logits = nan}, {.top_k = 1}, scratch), std::nullopt);
  const std::vector<int32_t> banned{1};
  EXPECT_EQ(sample({.logits = one, .banned = banned}, {}, scratch), std::nullopt);
  for (const int top_k : {0, 1, 2})
    EXPECT_EQ(sample({.logits = one}, {.top_k = top_k, .top_p = 0.5f, .min_p = 0.5f}, scratch), 1);
}

// Infinities come of penalties too: 20 / 2e-38 is one. At so high a temperature all that can be chosen weighs the same.
TEST(Sampler, InfinityCanBeChosenAtEveryTemperature) {
  FlushDenormals flushed;
  SamplerScratch scratch;
  TokenCounts counts(4);
  for (const int32_t id : {1, 2}) counts.add_prompt(id);
  const std::vector<float> row{1, 20, 30, -INFINITY};
  const std::vector<int32_t> banned{0};
  for (const float temperature : {1e-30f, 1.0f, 1e38f, 3e38f})
    for (const int top_k : {0, 2}) {
      const SamplingParams params{.temperature = temperature, .top_k = top_k, .repetition_penalty = 2e-38f};
      ASSERT_TRUE(validate(params, 4).ok());
      std::vector<int> hits(4);
      for (uint64_t position = 0; position < 100; position++)
        hits[static_cast<size_t>(
            sample({.logits = row, .counts = &counts, .banned = banned, .position = position}, params, scratch)
                .value_or(3))]++;
      EXPECT_EQ(hits[1] + hits[2], 100) << temperature << " of the best " << top_k;
      EXPECT_GT(std::min(hits[1], hits[2]), 20) << temperature << " of the best " << top_k;
    }
}

TEST(Sampler, RefusesWhatIsOutOfRange) {
  const auto subject = [](const SamplingParams& params) {
    const auto result = validate(params, 100);
    return result.ok() ? "" : result.error().subject;
  };
  EXPECT_EQ(subject({}), "");
  EXPECT_EQ(subject({.temperature = -1}), "temperature");
  EXPECT_EQ(subject({.temperature = NAN}), "temperature");
  EXPECT_EQ(subject({.top_k = -1}), "top_k");
  EXPECT_EQ(subject({.top_p = 0}), "top_p");
  EXPECT_EQ(subject({.top_p = NAN}), "top_p");
  EXPECT_EQ(subject({.min_p = 1.5f}), "min_p");
  EXPECT_EQ(subject({.logit_bias = {{100, 1.0f}}}), "logit_bias");
  EXPECT_EQ(subject({.logit_bias = {{-1, 1.0f}}}), "logit_bias");
  EXPECT_EQ(subject({.logit_bias = {{1, INFINITY}}}), "logit_bias");
  EXPECT_EQ(subject({.repetition_penalty = 0}), "repetition_penalty");
  EXPECT_EQ(subject({.frequency_penalty = INFINITY}), "frequency_penalty");
  EXPECT_EQ(subject({.presence_penalty = NAN}), "presence_penalty");
}

}  // namespace
}  // namespace unisono::decode

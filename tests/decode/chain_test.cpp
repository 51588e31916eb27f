#include "decode/chain.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "decode/rows.h"
#include "decode/select.h"

namespace unisono::decode {
namespace {

std::vector<float> weights_of(const std::vector<float>& row, float temperature) {
  std::vector<float> weights(row.size());
  weigh(row, best(row).score, temperature, weights);
  return weights;
}

TEST(Chain, WeighIsASoftmaxUpToAFactor) {
  std::mt19937 rng(2);
  for (const float temperature : {0.1f, 0.7f, 1.0f, 2.5f}) {
    const auto row = random_row(rng, 1000, 4, false, true);
    const auto weights = weights_of(row, temperature);
    const double top = static_cast<double>(best(row).score);
    for (size_t i = 0; i < row.size(); i++) {
      const double truth =
          std::isnan(row[i]) ? 0.0 : std::exp((static_cast<double>(row[i]) - top) / static_cast<double>(temperature));
      ASSERT_NEAR(static_cast<double>(weights[i]), truth, 2e-5 * truth + 1e-30);
    }
  }
}

TEST(Chain, WeighSurvivesExtremes) {
  const std::vector<float> row{1, INFINITY, -INFINITY, NAN, INFINITY};
  EXPECT_EQ(weights_of(row, 1), (std::vector<float>{0, 1, 0, 0, 1}));
  const std::vector<float> plain{2, 3, 3};
  EXPECT_EQ(weights_of(plain, 1e-30f), (std::vector<float>{0, 1, 1}));
  EXPECT_EQ(weights_of(plain, std::numeric_limits<float>::denorm_min()), (std::vector<float>{0, 1, 1}));
}

// The nucleus by a full sort in double. Returns how many of the best are in, with the distance from the border.
struct Nucleus {
  size_t n = 0;
  double margin = 0;  // how far the mass was from the target at the decision, as a share of the total
};
Nucleus nucleus(std::vector<float> weights, double p) {
  std::sort(weights.begin(), weights.end(), std::greater<>());
  const double total = std::accumulate(weights.begin(), weights.end(), 0.0);
  double mass = 0;
  for (size_t i = 0; i < weights.size(); i++) {
    const double before = mass;
    mass += static_cast<double>(weights[i]);
    if (mass >= p * total) return {i + 1, std::min(mass - p * total, p * total - before) / total};
  }
  return {weights.size(), 0};
}

TEST(Chain, TopPKeepsTheSmallestNucleus) {
  std::mt19937 rng(3);
  ChainScratch scratch;
  int compared = 0;
  for (int round = 0; round < 2000; round++) {
    const size_t n = 1 + rng() % 900;
    const auto row = random_row(rng, n, round % 4 == 0 ? 0.05f : 2.5f, round % 3 == 0, round % 5 == 0);
    if (best(row).id < 0) continue;
    const auto before = weights_of(row, 1);
    auto after = before;
    const float p = std::uniform_real_distribution<float>(0.01f, 0.999f)(rng);
    keep_top_p(after, p, scratch);
    const Nucleus truth = nucleus(before, static_cast<double>(p));
    const auto kept = static_cast<size_t>(std::count_if(after.begin(), after.end(), [](float w) { return w > 0; }));
    if (truth.margin < 1e-12) continue;  // decided by rounding
    compared++;
    ASSERT_EQ(kept, truth.n) << "n " << n << " p " << p;
    // What is kept is unchanged and better than what is not; of equal weights the first are kept.
    float worst_kept = 2, best_removed = 0;
    for (size_t i = 0; i < n; i++) {
      if (after[i] > 0) {
        ASSERT_EQ(after[i], before[i]);
        worst_kept = std::min(worst_kept, before[i]);
      } else {
        best_removed = std::max(best_removed, before[i]);
      }
    }
    ASSERT_GE(worst_kept, best_removed);
    if (worst_kept == best_removed) {
      bool removed = false;
      for (size_t i = 0; i < n; i++) {
        if (before[i] != worst_kept) continue;
        ASSERT_FALSE(removed && after[i] > 0) << "a later one of equal weights was kept";
        removed = removed || after[i] == 0;
      }
    }
  }
  EXPECT_GT(compared, 1500);
}

TEST(Chain, TopPAlwaysKeepsTheBest) {
  ChainScratch scratch;
  std::vector<float> weights{0.5f, 1.0f, 0.25f};
  keep_top_p(weights, 1e-6f, scratch);
  EXPECT_EQ(weights, (std::vector<float>{0, 1, 0}));
}

TEST(Chain, MinP) {
  std::vector<float> weights{0.5f, 1.0f, 0.25f, 0.1f};
  keep_min_p(weights, 0.25f);
  EXPECT_EQ(weights, (std::vector<float>{0.5f, 1.0f, 0.25f, 0}));
}

TEST(Chain, ChooseInvertsTheDistribution) {
  std::mt19937 rng(4);
  ChainScratch scratch;
  for (int round = 0; round < 500; round++) {
    const auto weights = weights_of(random_row(rng, 1 + rng() % 2000, 2), 1);
    const double total = std::accumulate(weights.begin(), weights.end(), 0.0);
    for (const double u : {0.0, 0.25, 0.5, 0.999, 1 - 0x1.0p-53, std::uniform_real_distribution<double>(0, 1)(rng)}) {
      const size_t i = choose(weights, u, scratch);
      ASSERT_GT(weights[i], 0);
      const double below = std::accumulate(weights.begin(), weights.begin() + static_cast<ptrdiff_t>(i), 0.0);
      ASSERT_LE(below, u * total * (1 + 1e-12));
      ASSERT_GE(below + static_cast<double>(weights[i]), u * total * (1 - 1e-12));
    }
  }
}

TEST(Chain, ChooseNeverTakesWhatIsRemoved) {
  ChainScratch scratch;
  std::vector<float> weights(1000, 0.0f);
  weights[300] = 1;
  for (const double u : {0.0, 0.5, 1 - 0x1.0p-53}) EXPECT_EQ(choose(weights, u, scratch), 300u);
}

}  // namespace
}  // namespace unisono::decode

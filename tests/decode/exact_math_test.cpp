#include "decode/exact_math.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace unisono::decode {
namespace {

TEST(ExactMath, ExpStaysWithinItsStatedError) {
  double worst = 0;
  for (float x = 0; x > kExpFloor; x -= 0.00037f) {
    const double truth = std::exp(static_cast<double>(x));
    worst = std::max(worst, std::abs(static_cast<double>(exp_nonpositive(x)) - truth) / truth);
  }
  EXPECT_LT(worst, 2e-7);
}

TEST(ExactMath, ExpIsMonotonicAcrossItsSteps) {
  // Around each half multiple of ln 2, where the polynomial's argument jumps, equal steps never go down by more than
  // rounding.
  for (int n = 0; n < 120; n++) {
    const float edge = -(static_cast<float>(n) + 0.5f) * 0.69314718f;
    EXPECT_GE(exp_nonpositive(edge + 1e-4f), exp_nonpositive(edge - 1e-4f));
  }
}

TEST(ExactMath, ExpAtItsEnds) {
  const float inf = std::numeric_limits<float>::infinity();
  EXPECT_EQ(exp_nonpositive(0.0f), 1.0f);
  EXPECT_EQ(exp_nonpositive(-0.0f), 1.0f);
  EXPECT_EQ(exp_nonpositive(3.0f), 1.0f);
  EXPECT_EQ(exp_nonpositive(inf), 1.0f);
  EXPECT_EQ(exp_nonpositive(-inf), 0.0f);
  EXPECT_EQ(exp_nonpositive(kExpFloor), 0.0f);
  EXPECT_EQ(exp_nonpositive(std::numeric_limits<float>::quiet_NaN()), 0.0f);
  EXPECT_GE(exp_nonpositive(std::nextafter(kExpFloor, 0.0f)), std::numeric_limits<float>::min());
}

TEST(ExactMath, LogStaysWithinItsStatedError) {
  for (double x = 1; x < 1e9; x *= 1.00013) {
    const double truth = std::log(x);
    ASSERT_NEAR(log_at_least_one(x), truth, 1e-15 * std::max(1.0, truth)) << x;
  }
  EXPECT_EQ(log_at_least_one(1.0), 0.0);
}

}  // namespace
}  // namespace unisono::decode

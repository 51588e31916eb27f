// Rotary angles against libm in long double.
#include "model/rope.h"

#include <gtest/gtest.h>

#include <cmath>

namespace unisono::model {
namespace {

TEST(Rope, FrequenciesEqualThePowers) {
  for (const int dims : {8, 64, 128, 256})
    for (const float base : {10000.0f, 100000.0f, 500000.0f, 1000000.0f}) {
      const auto f = rope_frequencies(dims, base, 1, {});
      ASSERT_EQ(f.size(), static_cast<size_t>(dims / 2));
      for (size_t i = 0; i < f.size(); i++)
        EXPECT_EQ(f[i], static_cast<float>(powl(base, -2.0L * static_cast<long double>(i) / dims))) << dims << " " << base << " " << i;
    }
  const std::vector<float> factors = {1, 2, 4, 8};
  const auto scaled = rope_frequencies(8, 10000, 2, factors);
  for (size_t i = 0; i < 4; i++) EXPECT_FLOAT_EQ(scaled[i], std::pow(10000.0f, -0.25f * static_cast<float>(i)) / factors[i] / 2);
}

TEST(Rope, AnglesAreWithinRounding) {
  const auto f = rope_frequencies(64, 100000, 1, {});
  std::vector<float> c(32), s(32);
  double worst = 0;
  for (int position = 0; position < 1 << 24; position += 1 + position / 50) {
    rope_angles(position, f, c.data(), s.data());
    for (size_t i = 0; i < 32; i++) {
      const long double angle = static_cast<float>(position) * f[i];
      worst = std::max<double>(worst, std::fabs(static_cast<double>(c[i] - cosl(angle))));
      worst = std::max<double>(worst, std::fabs(static_cast<double>(s[i] - sinl(angle))));
    }
  }
  EXPECT_LT(worst, 6e-8);  // half a unit in the last place of 1
}

}  // namespace
}  // namespace unisono::model

// exp and log made of plain additions, multiplications and divisions, so that a choice has the same bits on every machine.
// Never libm, never a fused multiply-add.
#pragma once

#include <bit>
#include <cstdint>

namespace unisono::decode {

// Below this exp counts as 0; above it no result is denormal.
inline constexpr float kExpFloor = -87.0f;

// exp(x) for x <= 0; anything above 0 gives 1, NaN and x <= kExpFloor give 0. Relative error below 2e-7. Branch-free, so
// that loops over it vectorise.
inline float exp_nonpositive(float x) {
  constexpr float kShift = 12582912.0f;  // 1.5 * 2^23: adding it rounds to an integer, kept in the low bits
  constexpr float kLn2High = 0.693359375f, kLn2Low = -2.12194440e-4f;  // n * high is exact for |n| < 2^14
  const float above = x > kExpFloor ? x : kExpFloor;
  const float c = above < 0.0f ? above : 0.0f;
  const float shifted = c * 1.44269504f + kShift;
  const float n = shifted - kShift;
  const float r = (c - n * kLn2High) - n * kLn2Low;  // |r| <= ln(2) / 2
  // Taylor to the 7th power: the rest is below 5.3e-9.
  float p = 1.0f / 5040;
  p = p * r + 1.0f / 720;
  p = p * r + 1.0f / 120;
  p = p * r + 1.0f / 24;
  p = p * r + 1.0f / 6;
  p = p * r + 0.5f;
  p = p * r + 1.0f;
  p = p * r + 1.0f;
  const int32_t exponent = std::bit_cast<int32_t>(shifted) - std::bit_cast<int32_t>(kShift) + 127;
  const float e = p * std::bit_cast<float>(exponent << 23);
  return x > kExpFloor ? e : 0.0f;
}

// ln(x) for normal, finite x >= 1. Absolute error below 1e-15 times max(1, ln x).
inline double log_at_least_one(double x) {
  uint64_t bits = std::bit_cast<uint64_t>(x);
  int exponent = static_cast<int>(bits >> 52) - 1023;
  double m = std::bit_cast<double>((bits & 0xfffffffffffff) | 0x3ff0000000000000);  // in [1, 2)
  if (m > 1.4142135623730951) {
    m *= 0.5;
    exponent++;
  }
  // ln m = 2 artanh(f); |f| <= 0.1716, so the term after f^21 is below 2e-18.
  const double f = (m - 1) / (m + 1), f2 = f * f;
  double s = 1.0 / 21;
  for (int k = 19; k >= 1; k -= 2) s = s * f2 + 1.0 / k;
  return 0.6931471805599453 * exponent + 2 * f * s;
}

}  // namespace unisono::decode

#include "model/rope.h"

#include <bit>
#include <cstdint>

namespace unisono::model {

namespace {

// ln x for finite x > 0: x = m 2^e with m in [1/sqrt 2, sqrt 2), ln m = 2 atanh((m - 1) / (m + 1)) as a series.
double natural_log(double x) {
  const auto bits = std::bit_cast<uint64_t>(x);
  int e = static_cast<int>(bits >> 52) - 1023;
  double m = std::bit_cast<double>((bits & 0xFFFFFFFFFFFFFull) | 0x3FF0000000000000ull);
  if (m > 1.4142135623730951) {
    m /= 2;
    e++;
  }
  const double z = (m - 1) / (m + 1), z2 = z * z;
  double sum = 0;
  for (int k = 25; k >= 1; k -= 2) sum = sum * z2 + 1.0 / k;  // the first term left out is below z^27 / 27 < 1e-21
  return 2 * z * sum + e * 0.69314718055994530942;
}

// e^x for |x| < 700: x = n ln 2 + r, a Taylor polynomial of r.
double natural_exp(double x) {
  const double scaled = x * 1.4426950408889634;
  const auto n = static_cast<int64_t>(scaled < 0 ? scaled - 0.5 : scaled + 0.5);
  const double r = (x - static_cast<double>(n) * 0.693147180369123816490) - static_cast<double>(n) * 1.90821492927058770002e-10;
  double sum = 1;
  for (int k = 18; k >= 1; k--) sum = sum * r / k + 1;
  return sum * std::bit_cast<double>(static_cast<uint64_t>(n + 1023) << 52);
}

}  // namespace

std::vector<float> rope_frequencies(int dims, float base, float scale, std::span<const float> factors) {
  std::vector<float> out(static_cast<size_t>(dims / 2));
  const double log_base = natural_log(base);
  for (size_t i = 0; i < out.size(); i++) {
    const double power = natural_exp(log_base * 2 * static_cast<double>(i) / dims);
    out[i] = static_cast<float>(1.0 / (power * (factors.empty() ? 1.0 : factors[i]) * scale));
  }
  return out;
}

void rope_angles(int position, std::span<const float> frequencies, float* cosines, float* sines) {
  for (size_t i = 0; i < frequencies.size(); i++) {
    const double angle = static_cast<float>(position) * frequencies[i];
    // angle = q pi/2 + r, |r| <= pi/4; pi/2 in two parts, the first with so few bits that q times it is exact.
    const auto q = static_cast<int64_t>(angle * 0.63661977236758134308 + 0.5);
    const double r = (angle - static_cast<double>(q) * 1.57079632673412561417) - static_cast<double>(q) * 6.07710050650619224932e-11;
    const double r2 = r * r;
    double s = 0, c = 0;
    for (int k = 15; k >= 3; k -= 2) s = (s - 1) * -r2 / (k * (k - 1));  // 1 - r^2/(2*3) (1 - r^2/(4*5) (...))
    for (int k = 16; k >= 2; k -= 2) c = (c - 1) * -r2 / (k * (k - 1));
    const double sine = r * (1 - s), cosine = 1 - c;
    const float values[4] = {static_cast<float>(cosine), static_cast<float>(sine), static_cast<float>(-cosine), static_cast<float>(-sine)};
    cosines[i] = values[q & 1 ? ((q & 2) ? 1 : 3) : (q & 2)];
    sines[i] = values[q & 1 ? (q & 2) : ((q & 2) ? 3 : 1)];
  }
}

}  // namespace unisono::model

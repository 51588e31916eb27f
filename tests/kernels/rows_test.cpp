// Row kernels: the same bits on every table, and close to what the formula says in double.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>

#include "base/thread_team.h"
#include "kernels/random.h"

namespace unisono::kernels {
namespace {

// Runs f on every table; all must give the bits of the first. Returns them.
std::vector<float> on_all(size_t n, const std::function<void(const Ops&, float*)>& f) {
  FlushDenormals flushed;
  std::vector<float> want;
  for (const Ops* ops : ops_here()) {
    std::vector<float> y(n);
    f(*ops, y.data());
    if (want.empty()) want = y;
    EXPECT_EQ(std::memcmp(y.data(), want.data(), n * 4), 0) << ops->name;
  }
  return want;
}

constexpr int kLengths[] = {8, 16, 64, 172, 576, 640};

TEST(Rows, MaximumIsTheLargest) {
  for (const Ops* ops : ops_here())
    for (int n : {1, 2, 15, 16, 17, 32, 100}) {
      auto x = random_floats(static_cast<size_t>(n), static_cast<uint32_t>(n));
      for (float& v : x) v -= 5;  // all below 0: what lies beyond the end must not count
      EXPECT_EQ(ops->maximum(x.data(), n), *std::max_element(x.begin(), x.end())) << ops->name << ", " << n;
    }
}

TEST(Rows, Quantise) {
  auto x = random_floats(64 * 32, 1);
  for (size_t i = 0; i < 32; i++) x[i] = 0;           // a block of zeros
  for (size_t i = 32; i < 64; i++) x[i] *= 1e-30f;    // tiny
  for (size_t i = 64; i < 96; i++) x[i] = 0.5f * static_cast<float>(i - 64);  // halves: ties to even
  x[96] = 1e30f;
  on_all(62 * sizeof(QuantBlock) / 4, [&](const Ops& ops, float* y) { ops.quantise(x.data(), 62 * 32, reinterpret_cast<QuantBlock*>(y)); });
  std::vector<QuantBlock> q(62);  // not in fours
  FlushDenormals flushed;
  best_ops().quantise(x.data(), 62 * 32, q.data());
  for (size_t b = 0; b < 62; b++) {
    int sum = 0, low = 0;
    for (size_t i = 0; i < 32; i++) {
      sum += q[b].q[i];
      low += i < 16 ? q[b].q[i] : 0;
      EXPECT_NEAR(q[b].q[i] * q[b].scale, x[b * 32 + i], q[b].scale * 0.50001f + 1e-30f);
    }
    EXPECT_EQ(q[b].minus_sum, -sum);
    EXPECT_EQ(q[b].scaled_sum, q[b].scale * static_cast<float>(sum));
    EXPECT_EQ(q[b].minus_sum_low, -low);
  }
}

// Below 127 times the smallest normal float a scale is flushed to 0, and below 127 / the largest one 127 / x is infinite.
TEST(Rows, QuantiseMakesZerosOfWhatHasNoScale) {
  constexpr int kBlocks = 11;
  auto x = random_floats(kBlocks * 32, 13);
  for (size_t i = 0; i < x.size(); i++) x[i] *= std::ldexp(1.0f, -114 - static_cast<int>(i / 32));
  const auto got = on_all(kBlocks * sizeof(QuantBlock) / 4, [&](const Ops& ops, float* y) {
    for (int b = 0; b < kBlocks; b++)
      ops.quantise(&x[static_cast<size_t>(b) * 32], 32, reinterpret_cast<QuantBlock*>(y) + b);
    std::vector<QuantBlock> together(kBlocks);
    ops.quantise(x.data(), kBlocks * 32, together.data());
    EXPECT_EQ(std::memcmp(together.data(), y, kBlocks * sizeof(QuantBlock)), 0) << ops.name;
  });
  int without = 0;
  for (size_t b = 0; b < kBlocks; b++) {
    QuantBlock q;
    std::memcpy(&q, &got[b * sizeof q / 4], sizeof q);
    const bool zeros = std::all_of(std::begin(q.q), std::end(q.q), [](int8_t v) { return v == 0; });
    EXPECT_EQ(zeros, q.scale == 0) << b;
    if (q.scale != 0) continue;
    without++;
    EXPECT_TRUE(q.minus_sum == 0 && q.minus_sum_low == 0 && q.scaled_sum == 0) << b;
  }
  EXPECT_GT(without, 2);
  EXPECT_LT(without, kBlocks - 2);
}

TEST(Rows, RoundingIsWhatQuantiseLost) {
  const auto x = random_floats(20 * 32, 12);
  FlushDenormals flushed;
  std::vector<QuantBlock> coarse(20), fine(20);
  best_ops().quantise(x.data(), 20 * 32, coarse.data());
  const auto lost = on_all(20 * 32, [&](const Ops& ops, float* y) { ops.rounding(x.data(), 20 * 32, coarse.data(), y); });
  best_ops().quantise(lost.data(), 20 * 32, fine.data());
  for (size_t b = 0; b < 20; b++)
    for (size_t i = 0; i < 32; i++) {
      const double once = static_cast<double>(coarse[b].scale) * coarse[b].q[i], twice = once + static_cast<double>(fine[b].scale) * fine[b].q[i];
      EXPECT_LE(std::fabs(lost[b * 32 + i]), coarse[b].scale * 0.50001f);
      EXPECT_NEAR(twice, x[b * 32 + i], coarse[b].scale / 127);
    }
}

TEST(Rows, RmsNorm) {
  for (int n : kLengths) {
    const auto x = random_floats(static_cast<size_t>(n), 2, 3), w = random_floats(static_cast<size_t>(n), 3);
    const auto y = on_all(static_cast<size_t>(n), [&](const Ops& ops, float* out) { ops.rms_norm(x.data(), w.data(), 1e-5f, out, n); });
    double squares = 0;
    for (float v : x) squares += static_cast<double>(v) * v;
    for (size_t i = 0; i < x.size(); i++)
      EXPECT_NEAR(y[i], x[i] / std::sqrt(squares / n + 1e-5) * w[i], 1e-6 * std::fabs(y[i]) + 1e-9);
  }
}

TEST(Rows, Gates) {
  const int n = 4003;
  auto g = random_floats(n, 4, 20);
  const auto u = random_floats(n, 5);
  g[0] = 0, g[1] = -100, g[2] = 100, g[3] = -1e30f, g[4] = 1e30f;
  const auto silu = on_all(n, [&](const Ops& ops, float* y) { ops.gate(GateKind::silu, g.data(), u.data(), y, n); });
  const auto gelu = on_all(n, [&](const Ops& ops, float* y) { ops.gate(GateKind::gelu_tanh, g.data(), u.data(), y, n); });
  for (size_t i = 5; i < static_cast<size_t>(n); i++) {
    const double x = g[i];
    EXPECT_NEAR(silu[i], x / (1 + std::exp(-x)) * u[i], 2e-6 * std::fabs(silu[i]) + 1e-30) << x;
    const double t = std::tanh(std::sqrt(2 / M_PI) * (x + 0.044715 * x * x * x));
    EXPECT_NEAR(gelu[i], 0.5 * x * (1 + t) * u[i], 4e-6 * std::fabs(x * u[i]) + 1e-30) << x;
  }
  for (size_t i = 0; i < 5; i++) EXPECT_TRUE(std::isfinite(silu[i]) && std::isfinite(gelu[i])) << g[i];
  EXPECT_EQ(silu[2], 100 * u[2]);
}

TEST(Rows, RopeTurnsPairs) {
  for (int dims : {8, 16, 64, 256}) {
    const auto x = random_floats(static_cast<size_t>(dims), 6), angle = random_floats(static_cast<size_t>(dims / 2), 7, 3);
    std::vector<float> c, s;
    for (float a : angle) c.push_back(std::cos(a)), s.push_back(std::sin(a));
    const auto y = on_all(static_cast<size_t>(dims), [&](const Ops& ops, float* out) {
      std::copy(x.begin(), x.end(), out);
      ops.rope(out, c.data(), s.data(), dims);
    });
    const size_t half = static_cast<size_t>(dims) / 2;
    for (size_t i = 0; i < half; i++) {
      EXPECT_EQ(y[i], x[i] * c[i] - x[i + half] * s[i]);
      EXPECT_EQ(y[i + half], x[i + half] * c[i] + x[i] * s[i]);
    }
  }
}

TEST(Rows, AddScaled) {
  for (int n : kLengths) {
    const auto x = random_floats(static_cast<size_t>(n), 8), z = random_floats(static_cast<size_t>(n), 9);
    const auto y = on_all(static_cast<size_t>(n), [&](const Ops& ops, float* out) {
      std::copy(x.begin(), x.end(), out);
      ops.add_scaled(out, z.data(), 0.37f, n);
    });
    for (size_t i = 0; i < x.size(); i++) EXPECT_EQ(y[i], std::fma(z[i], 0.37f, x[i]));
  }
}

TEST(Rows, Softmax) {
  for (int n : {1, 6, 8, 15, 16, 17, 64, 100, 128}) {
    const auto x = random_floats(static_cast<size_t>(n), 10, 5);
    const auto y = on_all(static_cast<size_t>(n), [&](const Ops& ops, float* out) {
      for (size_t i = 0; i < x.size(); i++) out[i] = x[i] - 20;  // all below 0: what lies beyond the end must not count
      ops.softmax(out, n);
    });
    double total = 0;
    for (float v : x) total += std::exp(static_cast<double>(v));
    for (size_t i = 0; i < x.size(); i++) EXPECT_NEAR(y[i], std::exp(static_cast<double>(x[i])) / total, 4e-6 * y[i]) << n;
  }
}

TEST(Rows, AddAndScale) {
  for (int n : kLengths) {
    const auto x = random_floats(static_cast<size_t>(n), 8), z = random_floats(static_cast<size_t>(n), 9);
    const auto y = on_all(static_cast<size_t>(n), [&](const Ops& ops, float* out) {
      std::copy(x.begin(), x.end(), out);
      ops.add(out, z.data(), n);
      ops.scale(out, 3.7f, n);
    });
    for (size_t i = 0; i < x.size(); i++) EXPECT_EQ(y[i], (x[i] + z[i]) * 3.7f);
  }
}

}  // namespace
}  // namespace unisono::kernels

// Products with bf16 activations: the promised order of sums, the same bits on every table, and weights that lose nothing.
#include <gtest/gtest.h>

#include <bit>
#include <cmath>

#include "base/thread_team.h"
#include "kernels/random.h"

namespace unisono::kernels {
namespace {

// Where value i of a block stands in Bf16Block::v.
size_t place(size_t i) { return i / 4 * 4 + (i % 4 == 1 ? 2 : i % 4 == 2 ? 1 : i % 4); }

std::vector<Bf16Block> rounded(const Ops& ops, const std::vector<float>& x) {
  std::vector<Bf16Block> a(x.size() / kBlock);
  ops.round_bf16(x.data(), static_cast<int64_t>(x.size()), a.data());
  return a;
}

TEST(RoundBf16, RoundsToNearestEvenOnEveryTable) {
  FlushDenormals flushed;
  std::vector<float> x = random_floats(1024, 21, 3);
  // Ties in both directions, the largest finite numbers, infinity, zeros.
  const uint32_t special[] = {0x3f808000, 0x3f818000, 0x3f807fff, 0x3f808001, 0x7f7fffff,
                              0xff7f7fff, 0x7f800000, 0x80000000, 0};
  for (size_t i = 0; i < std::size(special); i++) x[100 + i] = std::bit_cast<float>(special[i]);
  for (const Ops* ops : ops_here()) {
    const auto a = rounded(*ops, x);
    for (size_t i = 0; i < x.size(); i++) {
      const float got = bf16_to_float(a[i / kBlock].v[place(i % kBlock)]);
      // The two neighbours in bf16, and the distance to each, exactly.
      const float down = std::bit_cast<float>(std::bit_cast<uint32_t>(x[i]) & 0xffff0000u);
      const float up = std::bit_cast<float>((std::bit_cast<uint32_t>(x[i]) & 0xffff0000u) + 0x10000u);
      const double to_down = std::fabs(double(x[i]) - down),
                   to_up = std::isinf(up) ? std::fabs(std::ldexp(1.0, 128) - std::fabs(double(x[i])))
                                          : std::fabs(double(x[i]) - up);
      const bool down_is_even = (std::bit_cast<uint32_t>(down) >> 16) % 2 == 0;
      const float want = std::isinf(x[i]) ? x[i] : to_down < to_up || (to_down == to_up && down_is_even) ? down : up;
      ASSERT_EQ(std::bit_cast<uint32_t>(got), std::bit_cast<uint32_t>(want)) << ops->name << " value " << i << ": " << x[i];
    }
    const auto first = rounded(*compiled_ops()[0], x);
    ASSERT_EQ(std::memcmp(a.data(), first.data(), a.size() * sizeof a[0]), 0) << ops->name;
  }
}

TEST(MatmulBf16, PlainWeightsEqualTheReferenceOnEveryTable) {
  FlushDenormals flushed;
  const int64_t n = 90, k = 544;  // 17 blocks: stretches of 8 and a rest
  const FileTensor w = random_tensor(DType::bf16, n, k, 7);
  const Packed packed = pack(w);
  const int panels = packed.matrix.panels;
  std::vector<float> row(static_cast<size_t>(k));
  for (int rows : {1, 2, 7, 8, 23}) {
    const auto x = random_floats(static_cast<size_t>(rows * k), 3);
    const auto a = rounded(*compiled_ops()[0], x);
    std::vector<float> want(static_cast<size_t>(rows * n));
    for (int64_t i = 0; i < n; i++) {
      dequantise_row(w.type, w.row(i), k, row.data());
      for (int r = 0; r < rows; r++) {
        float f = 0;
        auto step = [&](int64_t at) {
          const Bf16Block& block = a[static_cast<size_t>((r * k + at) / kBlock)];
          f = std::fma(row[static_cast<size_t>(at)], bf16_to_float(block.v[place(static_cast<size_t>(at % kBlock))]), f);
        };
        for (int64_t four = 0; four < k; four += 4)
          for (int64_t at : {four + 2, four, four + 3, four + 1}) step(at);
        want[static_cast<size_t>(r * n + i)] = f;
      }
    }
    for (const Ops* ops : ops_here()) {
      const int64_t ldy = panels * kLanes;
      std::vector<float> y(static_cast<size_t>(rows * ldy), NAN);
      ops->matmul_bf16(packed.matrix, a.data(), rows, y.data(), ldy, 0, 3, {});  // any cut gives the same
      ops->matmul_bf16(packed.matrix, a.data(), rows, y.data(), ldy, 3, panels, {});
      for (int r = 0; r < rows; r++)
        ASSERT_EQ(
            std::memcmp(&y[static_cast<size_t>(r * ldy)], &want[static_cast<size_t>(r * n)], static_cast<size_t>(n) * 4), 0)
            << ops->name << " rows " << rows << " row " << r;
    }
  }
}

class MatmulBf16Types : public testing::TestWithParam<DType> {};

TEST_P(MatmulBf16Types, IsTheSameOnEveryTableAndCloseToExact) {
  if (!is_quantised(GetParam())) GTEST_SKIP() << "BF16 has its own test; F32 and F16 take f32 activations";
  FlushDenormals flushed;
  const int64_t n = 90, k = 3 * info(GetParam()).block_elems < 300 ? 352 : 768;
  const FileTensor w = random_tensor(GetParam(), n, k, 11);
  const Packed packed = pack(w);
  const int panels = packed.matrix.panels;
  const int64_t ldy = panels * kLanes;
  std::vector<float> row(static_cast<size_t>(k)), one(static_cast<size_t>(ldy));
  for (int rows : {1, 2, 3, 4, 5, 6, 7, 8, 23}) {
    const auto x = random_floats(static_cast<size_t>(rows * k), 5);
    const auto a = rounded(*compiled_ops()[0], x);
    std::vector<float> want;
    for (const Ops* ops : ops_here()) {
      std::vector<float> y(static_cast<size_t>(rows * ldy), NAN);
      ops->matmul_bf16(packed.matrix, a.data(), rows, y.data(), ldy, 0, 1, {});
      ops->matmul_bf16(packed.matrix, a.data(), rows, y.data(), ldy, 1, panels, {});
      if (want.empty()) want = y;
      ASSERT_EQ(std::memcmp(y.data(), want.data(), y.size() * 4), 0) << ops->name << " rows " << rows;
      for (int r = 0; r < rows; r++) {  // a row doesn't know its neighbours
        ops->matmul_bf16(packed.matrix, &a[static_cast<size_t>(r * k / kBlock)], 1, one.data(), ldy, 0, panels, {});
        ASSERT_EQ(std::memcmp(one.data(), &want[static_cast<size_t>(r * ldy)], static_cast<size_t>(ldy) * 4), 0)
            << ops->name << " row " << r;
      }
    }
    for (int64_t i = 0; i < n; i++) {
      dequantise_row(w.type, w.row(i), k, row.data());
      for (int r = 0; r < rows; r += 5) {
        double sum = 0, size = 0;
        for (int64_t at = 0; at < k; at++) {
          const Bf16Block& block = a[static_cast<size_t>((r * k + at) / kBlock)];
          const double term = double(row[static_cast<size_t>(at)]) *
                              double(bf16_to_float(block.v[place(static_cast<size_t>(at % kBlock))]));
          sum += term;
          size += std::fabs(term);
        }
        ASSERT_NEAR(want[static_cast<size_t>(r * ldy + i)], sum, 3e-6 * size) << "row " << r << " output " << i;
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Types, MatmulBf16Types, testing::ValuesIn(kAllTypes),
                         [](const auto& type) { return std::string(unisono::info(type.param).name); });

}  // namespace
}  // namespace unisono::kernels

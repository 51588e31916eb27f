// Products against one straightforward reference each, bit for bit, on every table, for every tile a caller can cause.
#include <gtest/gtest.h>

#include <cmath>

#include "base/thread_team.h"
#include "kernels/random.h"

namespace unisono::kernels {
namespace {

// f = fma(w, x, f) in K order, weights as dequantise_row() has them.
std::vector<float> reference_f32(const FileTensor& w, const std::vector<float>& x, int rows) {
  std::vector<float> y(static_cast<size_t>(rows * w.n)), row(static_cast<size_t>(w.k));
  for (int64_t n = 0; n < w.n; n++) {
    dequantise_row(w.type, w.row(n), w.k, row.data());
    for (int r = 0; r < rows; r++) {
      float f = 0;
      for (int64_t i = 0; i < w.k; i++) f = std::fma(row[static_cast<size_t>(i)], x[static_cast<size_t>(r * w.k + i)], f);
      y[static_cast<size_t>(r * w.n + n)] = f;
    }
  }
  return y;
}

// The exact product of the dequantised weights with the dequantised activations, in double.
double exact(const FileTensor& w, int64_t n, const QuantBlock* x) {
  std::vector<float> row(static_cast<size_t>(w.k));
  dequantise_row(w.type, w.row(n), w.k, row.data());
  double sum = 0;
  for (int64_t i = 0; i < w.k; i++)
    sum += static_cast<double>(row[static_cast<size_t>(i)]) * x[i / kBlock].scale * x[i / kBlock].q[i % kBlock];
  return sum;
}

struct Shape {
  int64_t n, k;
};

class Matmul : public testing::TestWithParam<DType> {};

TEST_P(Matmul, F32EqualsTheReferenceOnEveryTable) {
  FlushDenormals flushed;
  for (const Shape s : {Shape{16, 256}, Shape{90, 768}, Shape{33, 512}}) {
    const FileTensor w = random_tensor(GetParam(), s.n, s.k, 7);
    const Packed packed = pack(w);
    const int panels = packed.matrix.panels;
    for (int rows : {1, 2, 7, 13}) {
      const auto x = random_floats(static_cast<size_t>(rows * s.k), 3);
      const auto want = reference_f32(w, x, rows);
      for (const Ops* ops : ops_here()) {
        const int64_t ldy = panels * kLanes;
        std::vector<float> y(static_cast<size_t>(rows * ldy), NAN);
        ops->matmul_f32(packed.matrix, x.data(), s.k, rows, y.data(), ldy, 0, panels / 2, {});  // any cut gives the same
        ops->matmul_f32(packed.matrix, x.data(), s.k, rows, y.data(), ldy, panels / 2, panels, {});
        for (int r = 0; r < rows; r++)
          ASSERT_EQ(std::memcmp(&y[static_cast<size_t>(r * ldy)], &want[static_cast<size_t>(r * s.n)], static_cast<size_t>(s.n) * 4), 0)
              << ops->name << " rows " << rows << " row " << r << " n " << s.n;
      }
    }
  }
}

TEST_P(Matmul, Int8IsTheSameOnEveryTableAndCloseToExact) {
  if (!is_quantised(GetParam())) GTEST_SKIP() << "plain types take f32 activations";
  FlushDenormals flushed;
  const int64_t step = info(GetParam()).block_elems;
  for (const Shape s : {Shape{16, 256}, Shape{90, 3 * step}, Shape{40, 768}, Shape{33, 2048}}) {  // the last: panels that few rows stream
    const FileTensor w = random_tensor(GetParam(), s.n, s.k, 11);
    const Packed packed = pack(w);
    const int panels = packed.matrix.panels;
    const int64_t ldy = panels * kLanes;
    for (int rows = 1; rows <= 23; rows += rows < 12 ? 1 : 11) {
      const auto x = random_floats(static_cast<size_t>(rows * s.k), 5);
      std::vector<QuantBlock> a(static_cast<size_t>(rows * s.k / kBlock));
      compiled_ops()[0]->quantise(x.data(), rows * s.k, a.data());
      std::vector<float> want;
      for (const Ops* ops : ops_here()) {
        std::vector<float> y(static_cast<size_t>(rows * ldy), NAN);
        ops->matmul_int8(packed.matrix, a.data(), rows, y.data(), ldy, 0, 1, {});
        ops->matmul_int8(packed.matrix, a.data(), rows, y.data(), ldy, 1, panels, {});
        if (want.empty()) want = y;
        ASSERT_EQ(std::memcmp(y.data(), want.data(), y.size() * 4), 0) << ops->name << " rows " << rows;
      }
      for (int r = 0; r < rows; r += 5) {
        double size = 0, worst = 0;
        for (int64_t n = 0; n < s.n; n++) {
          const double e = exact(w, n, &a[static_cast<size_t>(r * s.k / kBlock)]);
          size = std::max(size, std::fabs(e));
          worst = std::max(worst, std::fabs(e - static_cast<double>(want[static_cast<size_t>(r * ldy + n)])));
        }
        ASSERT_LE(worst, 1e-5 * size) << "rows " << rows << " row " << r;
        for (int64_t n = s.n; n < ldy; n++) ASSERT_EQ(want[static_cast<size_t>(r * ldy + n)], 0.0f);  // lanes of zeros
      }
    }
  }
}

// One row alone has the bits it has among others: what batching relies on.
TEST_P(Matmul, ARowDoesNotKnowItsNeighbours) {
  if (!is_quantised(GetParam())) GTEST_SKIP() << "plain types take f32 activations";
  FlushDenormals flushed;
  const FileTensor w = random_tensor(GetParam(), 48, 512, 13);
  const Packed packed = pack(w);
  const int rows = 70;
  const auto x = random_floats(rows * 512, 17);
  std::vector<QuantBlock> a(rows * 16);
  std::vector<float> all(rows * 48), one(48);
  for (const Ops* ops : ops_here()) {
    ops->quantise(x.data(), rows * 512, a.data());
    ops->matmul_int8(packed.matrix, a.data(), rows, all.data(), 48, 0, 3, {});
    for (int r = 0; r < rows; r++) {
      ops->matmul_int8(packed.matrix, &a[static_cast<size_t>(r) * 16], 1, one.data(), 48, 0, 3, {});
      ASSERT_EQ(std::memcmp(one.data(), &all[static_cast<size_t>(r) * 48], 48 * 4), 0) << ops->name << " row " << r;
    }
  }
}

std::string name_of(const testing::TestParamInfo<DType>& type) { return std::string(unisono::info(type.param).name); }

INSTANTIATE_TEST_SUITE_P(Types, Matmul, testing::ValuesIn(kAllTypes), name_of);

}  // namespace
}  // namespace unisono::kernels

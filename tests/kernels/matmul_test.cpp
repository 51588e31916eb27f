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

enum class Input { int8, bf16, f32 };

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
    for (int rows = 1; rows <= 34; rows += rows < 12 ? 1 : 11) {
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

// Whatever a product fetches beside its work, chunk after chunk: all that was asked for, and no bit changes.
TEST_P(Matmul, FetchesWhatIsReadLater) {
  FlushDenormals flushed;
  const int64_t k = 768;
  const FileTensor w = random_tensor(GetParam(), 90, k, 19);
  const Packed packed = pack(w);
  const int panels = packed.matrix.panels;
  const int64_t ldy = panels * kLanes;
  const std::vector<std::byte> memory(size_t{40} << 10);
  const std::vector<int32_t> chunks = {3, 0, 7};
  for (const int rows : {1, 3, 16, 70}) {
    const auto x = random_floats(static_cast<size_t>(rows * k), 5);
    std::vector<QuantBlock> int8(static_cast<size_t>(rows * k / kBlock));
    std::vector<Bf16Block> bf16(int8.size());
    for (const Ops* ops : ops_here()) {
      ops->quantise(x.data(), rows * k, int8.data());
      ops->round_bf16(x.data(), rows * k, bf16.data());
      const auto multiply = [&](Input kind, Later* later, float* y) {
        const Upcoming then{memory.data(), 9000, later};
        switch (kind) {
          case Input::int8: return ops->matmul_int8(packed.matrix, int8.data(), rows, y, ldy, 0, panels, then);
          case Input::bf16: return ops->matmul_bf16(packed.matrix, bf16.data(), rows, y, ldy, 0, panels, then);
          case Input::f32: return ops->matmul_f32(packed.matrix, x.data(), k, rows, y, ldy, 0, panels, then);
        }
      };
      for (const auto kind : {Input::int8, Input::bf16, Input::f32}) {
        if (kind == Input::int8 && !is_quantised(GetParam())) continue;
        if (kind == Input::bf16 && !is_quantised(GetParam()) && GetParam() != DType::bf16) continue;
        std::vector<float> plain(static_cast<size_t>(rows * ldy)), beside(plain.size());
        multiply(kind, nullptr, plain.data());
        // Twice the pace at which it would just be done: tiles take whole lines at a time.
        const double steps = static_cast<double>(rows) * panels * static_cast<double>(k / kBlock);
        Later later{memory.data(), 4096, chunks, 48, 0, 2 * 3 * 48 / steps, 0};
        const bool streams = kind == Input::int8 && rows <= 2;  // memory has no time to spare
        multiply(kind, &later, beside.data());
        ASSERT_EQ(std::memcmp(plain.data(), beside.data(), plain.size() * 4), 0) << ops->name << " rows " << rows;
        if (!streams) {
          EXPECT_TRUE(later.chunks.empty()) << ops->name << " rows " << rows << " " << static_cast<int>(kind);
        }
      }
    }
  }
}

std::string name_of(const testing::TestParamInfo<DType>& type) { return std::string(unisono::info(type.param).name); }

INSTANTIATE_TEST_SUITE_P(Types, Matmul, testing::ValuesIn(kAllTypes), name_of);

}  // namespace
}  // namespace unisono::kernels

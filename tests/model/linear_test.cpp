// Which activations a product takes, and that it is the product.
#include "model/linear.h"

#include <gtest/gtest.h>

#include <cstring>

#include "base/buffer.h"

namespace unisono::model {
namespace {

// A BF16 matrix [n][k] of small integers, which are exact in it.
struct Matrix {
  Matrix(int64_t n, int64_t k) : values(static_cast<size_t>(n * k)), bits(values.size()) {
    for (size_t i = 0; i < values.size(); i++) {
      values[i] = static_cast<float>(i * 7 % 11) - 5;
      uint32_t all;
      std::memcpy(&all, &values[i], 4);
      bits[i] = static_cast<uint16_t>(all >> 16);
    }
    view = {.type = DType::bf16, .n_dims = 2, .dims = {n, k}, .data = reinterpret_cast<const std::byte*>(bits.data())};
  }
  std::vector<float> values;
  std::vector<uint16_t> bits;
  TensorView view{};
};

TEST(Linear, RowsThatAreNoWholeBlocksTakeF32) {
  const Matrix odd(20, 48), even(20, 64);
  for (const Activations dial : {Activations::int8, Activations::bf16, Activations::f32}) {
    Linear linear({{"odd", odd.view, {}}}, dial);
    EXPECT_TRUE(linear.needs(Activations::f32));
    EXPECT_FALSE(linear.needs(Activations::bf16));
    EXPECT_EQ(Linear({{"even", even.view, {}}}, dial).needs(Activations::bf16), dial != Activations::f32);
    Buffer memory(linear.bytes());
    linear.place(memory.data());
    for (int p = 0; p < linear.panels(); p++) linear.pack(p);
    const std::vector<float> x(48, 2.0f);
    std::vector<float> y(static_cast<size_t>(linear.columns()));
    linear.multiply(kernels::best_ops(), {.f32 = x.data(), .f32_stride = 48}, 0, 1, y.data(), linear.columns(), 0, linear.panels(), {});
    for (size_t n = 0; n < 20; n++) {
      float sum = 0;
      for (size_t k = 0; k < 48; k++) sum += 2 * odd.values[n * 48 + k];
      EXPECT_EQ(y[n], sum) << n;
    }
  }
}

}  // namespace
}  // namespace unisono::model

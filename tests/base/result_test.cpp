#include "base/result.h"

#include <gtest/gtest.h>

#include "base/philox.h"
#include "base/tensor.h"

namespace unisono {
namespace {

Result<std::string> half(int n) {
  if (n % 2 != 0) return Error{"odd", "n"};
  return std::to_string(n / 2);
}

TEST(Result, HoldsAValueOrASentence) {
  EXPECT_EQ(*half(4), "2");
  EXPECT_EQ(half(3).error().message, "odd");
  EXPECT_EQ(half(3).error().subject, "n");
  EXPECT_DEATH((void)half(3).value(), "of an error");
}

// Vectors published with the generator (Random123, kat_vectors: philox4x32 10).
TEST(Philox, EqualsItsPublishedVectors) {
  using Words = std::array<uint32_t, 4>;
  EXPECT_EQ(philox({0, 0, 0, 0}, {0, 0}), (Words{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}));
  EXPECT_EQ(philox({0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff}, {0xffffffff, 0xffffffff}),
            (Words{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}));
  EXPECT_EQ(philox({0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}, {0xa4093822, 0x299f31d0}),
            (Words{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}));
}

TEST(TensorView, ShapesAreToldWhenTheyDiffer) {
  TensorView view{.type = DType::q4_1, .n_dims = 2, .dims = {8, 64}};
  EXPECT_EQ(view.bytes(), 8u * 2 * 20);
  EXPECT_TRUE(expect_shape("w", view, {8, 64}).ok());
  EXPECT_EQ(expect_shape("w", view, {64}).error().message,
            "Tensor 'w' has shape [8, 64] where the model's settings ask for [64].");
}

}  // namespace
}  // namespace unisono

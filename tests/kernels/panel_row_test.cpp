// A row of panels is the row of the tensor they were packed from.
#include "kernels/panel_row.h"

#include <gtest/gtest.h>

#include <string>

#include "kernels/random.h"

namespace unisono::kernels {
namespace {

class PanelRow : public testing::TestWithParam<DType> {};

TEST_P(PanelRow, IsTheTensorsRow) {
  constexpr int kRows = 37, kValues = 768;  // the last panel is not full
  const FileTensor file = random_tensor(GetParam(), kRows, kValues, 1);
  const Packed w = pack(file);
  std::vector<float> expected(kValues), got(kValues);
  for (int row = 0; row < kRows; row++) {
    dequantise_row(file.type, file.row(row), kValues, expected.data());
    panel_row(w.matrix, row, got.data());
    ASSERT_EQ(std::memcmp(got.data(), expected.data(), kValues * sizeof(float)), 0) << row;  // signs of zeros too
  }
}

INSTANTIATE_TEST_SUITE_P(Types, PanelRow, testing::ValuesIn(kAllTypes),
                         [](const auto& type) { return std::string(unisono::info(type.param).name); });

}  // namespace
}  // namespace unisono::kernels

#include "base/tensor.h"

#include <algorithm>

namespace unisono {

const DTypeInfo& info(DType type) {
  static constexpr std::array<DTypeInfo, kDTypes> table = {{
      {"F32", 1, 4},
      {"F16", 1, 2},
      {"BF16", 1, 2},
      {"Q8_0", 32, 34},
      {"Q4_0", 32, 18},
      {"Q4_1", 32, 20},
      {"Q5_0", 32, 22},
      {"Q5_1", 32, 24},
      {"Q4_K", 256, 144},
      {"Q5_K", 256, 176},
      {"Q6_K", 256, 210},
  }};
  return table[static_cast<size_t>(type)];
}

int64_t TensorView::rows() const {
  int64_t n = 1;
  for (int i = 0; i + 1 < n_dims; i++) n *= dims[static_cast<size_t>(i)];
  return n;
}

size_t TensorView::row_bytes() const {
  const DTypeInfo& t = info(type);
  return static_cast<size_t>(columns() / t.block_elems) * static_cast<size_t>(t.block_bytes);
}

namespace {
template <class Dims>
std::string dims_text(const Dims& dims, size_t n) {
  std::string text = "[";
  for (size_t i = 0; i < n; i++) text += (i == 0 ? "" : ", ") + std::to_string(*(dims.begin() + i));
  return text + "]";
}
}  // namespace

std::string shape_text(const TensorView& view) { return dims_text(view.dims, static_cast<size_t>(view.n_dims)); }

Result<void> expect_shape(std::string_view name, const TensorView& view, std::initializer_list<int64_t> dims) {
  if (static_cast<size_t>(view.n_dims) == dims.size() && std::equal(dims.begin(), dims.end(), view.dims.begin())) return {};
  return Error{"Tensor '" + std::string(name) + "' has shape " + shape_text(view) + " where the model's settings ask for " +
                   dims_text(dims, dims.size()) + ".",
               std::string(name)};
}

}  // namespace unisono

// What a tensor in a file is: an element type, a shape and a place in memory. Views own nothing.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>

#include "base/result.h"

namespace unisono {

// Element types we can compute with. The quantised ones are GGUF's blocks; a row holds a whole number of blocks.
enum class DType : uint8_t { f32, f16, bf16, q8_0, q4_0, q4_1, q5_0, q5_1, q4_k, q5_k, q6_k };
inline constexpr int kDTypes = 11;

struct DTypeInfo {
  std::string_view name{};  // as GGUF tools write it: "Q4_K"
  int block_elems = 0;      // elements a block holds; 1 for plain types
  int block_bytes = 0;
};
const DTypeInfo& info(DType type);

// A tensor's elements in memory, rows one after another. Dims are outermost first (a weight is [rows, columns]), the
// reverse of the order in a GGUF file.
struct TensorView {
  DType type = DType::f32;
  int n_dims = 0;  // 1 to 4
  std::array<int64_t, 4> dims{};
  const std::byte* data = nullptr;

  int64_t columns() const { return dims[static_cast<size_t>(n_dims - 1)]; }  // elements in a row
  int64_t rows() const;                                                       // product of the other dims
  size_t row_bytes() const;
  size_t bytes() const { return static_cast<size_t>(rows()) * row_bytes(); }
};

// "[49152, 576]"
std::string shape_text(const TensorView& view);

// Fails with a sentence naming the tensor, what was expected and what is there.
Result<void> expect_shape(std::string_view name, const TensorView& view, std::initializer_list<int64_t> dims);

}  // namespace unisono

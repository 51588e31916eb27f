// A matrix product of the model: one or more tensors of the file, packed one beside the other, that read the same
// activations (q, k and v; gate and up).
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/buffer.h"
#include "base/result.h"
#include "base/tensor.h"
#include "kernels/ops.h"

namespace unisono::model {

// Input rows, prepared as the Linear needs them (Linear::needs_int8, needs_f32).
struct ActivationRows {
  const kernels::QuantBlock* int8 = nullptr;  // [rows][k / 32]
  const float* f32 = nullptr;                 // [rows][f32_stride]
  int64_t f32_stride = 0;
};

class Linear {
 public:
  // A tensor [n][k] and where its rows come from: output row i is the tensor's row order[i]; empty: row i.
  struct Part {
    std::string_view name{};
    TensorView view{};
    std::vector<int32_t> order{};
  };

  Linear() = default;
  // Reserves memory; pack() fills it. int8_activations: quantised parts take int8, plain ones always f32.
  Linear(std::vector<Part> parts, bool int8_activations);

  int k() const { return k_; }
  int columns() const { return columns_; }                      // of the output, parts padded to whole panels
  int first_column(size_t part) const { return segments_[part].first_panel * kernels::kLanes; }
  int panels() const { return columns_ / kernels::kLanes; }
  bool needs_int8() const { return needs_int8_; }
  bool needs_f32() const { return needs_f32_; }
  size_t bytes() const;

  // Packs panel `panel`; each once, by any thread. Panels begin as zeros.
  void pack(int panel);

  // y[row][first .. last panel's columns) for `rows` rows from `first_row` of x; y is [..][ldy] from the same row.
  void multiply(const kernels::Ops& ops, const ActivationRows& x, int first_row, int rows, float* y, int64_t ldy, int first_panel,
                int last_panel) const;

 private:
  struct Segment {
    Part part{};
    kernels::PanelMatrix matrix{};
    Buffer memory{};
    int first_panel = 0;
    bool int8 = false;
  };
  std::vector<Segment> segments_{};
  int k_ = 0, columns_ = 0;
  bool needs_int8_ = false, needs_f32_ = false;
};

}  // namespace unisono::model

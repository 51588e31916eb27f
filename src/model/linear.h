// A matrix product of the model: one or more tensors of the file, packed one beside the other, that read the same
// activations (q, k and v; gate and up).
#pragma once

#include <algorithm>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "base/tensor.h"
#include "kernels/ops.h"
#include "model/model.h"

namespace unisono::model {

// Input rows, prepared as the Linear needs them (Linear::needs).
struct ActivationRows {
  const kernels::QuantBlock* int8 = nullptr;  // [rows][k / 32]
  const kernels::Bf16Block* bf16 = nullptr;   // [rows][k / 32]
  const float* f32 = nullptr;                 // [rows][f32_stride]
  int64_t f32_stride = 0;
};

// As what a tensor's weights are packed: F16 weights that lose nothing as BF16, as those of models trained in it, as that.
DType packed_type(const TensorView& view, Activations dial);

class Linear {
 public:
  // A tensor [n][k] and where its rows come from: output row i is the tensor's row order[i]; empty: row i.
  struct Part {
    std::string_view name{};
    TensorView view{};  // its memory is read until all panels are packed, and may go then
    std::vector<int32_t> order{};
    std::optional<DType> packed{};  // as what; empty: packed_type() of the view
  };

  Linear() = default;
  // Takes no memory yet: place() gives it, pack() fills it. The activations of each part follow from the dial and its type.
  Linear(std::vector<Part> parts, Activations dial);

  int k() const { return k_; }
  int columns() const { return columns_; }                      // of the output, parts padded to whole panels
  int first_column(size_t part) const { return segments_[part].first_panel * kernels::kLanes; }
  int panels() const { return columns_ / kernels::kLanes; }
  bool needs(Activations kind) const;  // some part takes them
  size_t bytes() const;
  size_t bytes(Activations kind) const;  // of the parts that take them

  // bytes() of zeros for the panels, aligned to 64, which outlive this.
  void place(std::byte* memory);
  // Packs panel `panel`; each once, by any thread.
  void pack(int panel);
  // f(bytes) for what panels [begin, end) alone were packed from: all of a tensor, or rows that lie in the panels' order.
  template <class F>
  void each_source(int begin, int end, F f) const {
    for (const Segment& s : segments_) {
      const int from = std::max(begin - s.first_panel, 0), to = std::min(end - s.first_panel, s.matrix.panels);
      if (from >= to || (!s.part.order.empty() && to - from < s.matrix.panels)) continue;
      const size_t row = s.part.view.row_bytes(), first = static_cast<size_t>(from) * kernels::kLanes;
      const size_t last = std::min(static_cast<size_t>(to) * kernels::kLanes, static_cast<size_t>(s.matrix.n));
      f(std::span<const std::byte>(s.part.view.data + first * row, (last - first) * row));
    }
  }

  // Weights of output `column` of the only part, k floats.
  void row(int column, float* out) const;

  // y[row][first .. last panel's columns) for `rows` rows from `first_row` of x; y is [..][ldy] from the same row. then: what
  // the calling thread reads next.
  void multiply(const kernels::Ops& ops, const ActivationRows& x, int first_row, int rows, float* y, int64_t ldy, int first_panel,
                int last_panel, kernels::Upcoming then) const;
  // Two panels from `panel` on, as what comes next. Beyond the last panel: nothing.
  kernels::Upcoming upcoming(int panel) const;

 private:
  struct Segment {
    Part part{};
    kernels::PanelMatrix matrix{};
    std::byte* memory = nullptr;
    int first_panel = 0;
    Activations activations = Activations::f32;
  };
  std::vector<Segment> segments_{};
  int k_ = 0, columns_ = 0;
};

}  // namespace unisono::model

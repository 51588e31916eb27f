#include "model/linear.h"

#include <algorithm>
#include <array>

#include "kernels/pack.h"

namespace unisono::model {

Linear::Linear(std::vector<Part> parts, bool int8_activations) {
  int panel = 0;
  for (Part& part : parts) {
    const int64_t n = part.view.rows(), k = part.view.columns();
    Segment s;
    s.int8 = int8_activations && info(part.view.type).block_elems > 1;
    s.matrix = {part.view.type,
                static_cast<int>(n),
                static_cast<int>(k),
                kernels::panel_count(n),
                kernels::panel_bytes(part.view.type, k),
                nullptr};
    s.memory = Buffer(s.matrix.panel_bytes * static_cast<size_t>(s.matrix.panels));
    s.matrix.data = s.memory.data();
    s.first_panel = panel;
    s.part = std::move(part);
    panel += s.matrix.panels;
    k_ = static_cast<int>(k);
    (s.int8 ? needs_int8_ : needs_f32_) = true;
    segments_.push_back(std::move(s));
  }
  columns_ = panel * kernels::kLanes;
}

size_t Linear::bytes() const {
  size_t sum = 0;
  for (const Segment& s : segments_) sum += s.memory.size();
  return sum;
}

void Linear::pack(int panel) {
  auto s = std::find_if(segments_.rbegin(), segments_.rend(), [&](const Segment& x) { return x.first_panel <= panel; });
  const int own = panel - s->first_panel;
  std::array<const std::byte*, kernels::kLanes> rows{};
  for (int lane = 0; lane < kernels::kLanes; lane++) {
    const int row = own * kernels::kLanes + lane;
    if (row >= s->matrix.n) break;
    const int from = s->part.order.empty() ? row : s->part.order[static_cast<size_t>(row)];
    rows[static_cast<size_t>(lane)] = s->part.view.data + static_cast<size_t>(from) * s->part.view.row_bytes();
  }
  kernels::pack_panel(s->matrix.type, k_, rows, s->memory.data() + s->matrix.panel_bytes * static_cast<size_t>(own));
}

void Linear::multiply(const kernels::Ops& ops, const ActivationRows& x, int first_row, int rows, float* y, int64_t ldy,
                      int first_panel, int last_panel) const {
  if (rows == 0) return;
  for (const Segment& s : segments_) {
    const int begin = std::max(first_panel, s.first_panel) - s.first_panel;
    const int end = std::min(last_panel, s.first_panel + s.matrix.panels) - s.first_panel;
    if (begin >= end) continue;
    float* out = y + first_row * ldy + s.first_panel * kernels::kLanes;
    if (s.int8) {
      ops.matmul_int8(s.matrix, x.int8 + static_cast<int64_t>(first_row) * (k_ / kernels::kBlock), rows, out, ldy, begin, end);
    } else {
      ops.matmul_f32(s.matrix, x.f32 + first_row * x.f32_stride, x.f32_stride, rows, out, ldy, begin, end);
    }
  }
}

}  // namespace unisono::model

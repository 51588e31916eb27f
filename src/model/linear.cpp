#include "model/linear.h"

#include <algorithm>
#include <array>

#include "base/check.h"
#include "kernels/pack.h"
#include "kernels/panel_row.h"

namespace unisono::model {

namespace {

// Rounded activations come in whole blocks, which a row of quantised weights always has.
Activations activations_for(DType type, int64_t k, Activations dial) {
  if (dial == Activations::f32 || type == DType::f32 || type == DType::f16 || k % kernels::kBlock != 0) return Activations::f32;
  return type == DType::bf16 ? Activations::bf16 : dial;
}

}  // namespace

DType packed_type(const TensorView& view, Activations dial) {
  if (view.type != DType::f16 || dial == Activations::f32) return view.type;
  return kernels::halves_are_bf16(view.data, view.rows() * view.columns()) ? DType::bf16 : DType::f16;
}

Linear::Linear(std::vector<Part> parts, Activations dial) {
  int panel = 0;
  for (Part& part : parts) {
    const int64_t n = part.view.rows(), k = part.view.columns();
    Segment s;
    const DType type = part.packed ? *part.packed : packed_type(part.view, dial);
    s.activations = activations_for(type, k, dial);
    s.matrix = {type, static_cast<int>(n), static_cast<int>(k), kernels::panel_count(n), kernels::panel_bytes(type, k), nullptr};
    s.first_panel = panel;
    s.part = std::move(part);
    panel += s.matrix.panels;
    k_ = static_cast<int>(k);
    segments_.push_back(std::move(s));
  }
  columns_ = panel * kernels::kLanes;
}

bool Linear::needs(Activations kind) const {
  return std::any_of(segments_.begin(), segments_.end(), [&](const Segment& s) { return s.activations == kind; });
}

size_t Linear::bytes(Activations kind) const {
  size_t sum = 0;
  for (const Segment& s : segments_)
    if (s.activations == kind) sum += s.matrix.panel_bytes * static_cast<size_t>(s.matrix.panels);
  return sum;
}

size_t Linear::bytes() const {
  size_t sum = 0;
  for (const Segment& s : segments_) sum += s.matrix.panel_bytes * static_cast<size_t>(s.matrix.panels);
  return sum;
}

void Linear::place(std::byte* memory) {
  for (Segment& s : segments_) {
    s.memory = memory;
    s.matrix.data = memory;
    memory += s.matrix.panel_bytes * static_cast<size_t>(s.matrix.panels);
  }
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
  std::byte* out = s->memory + s->matrix.panel_bytes * static_cast<size_t>(own);
  if (s->part.view.type == DType::f16 && s->matrix.type == DType::bf16) {
    kernels::pack_halves_as_bf16(k_, rows, out);
  } else {
    kernels::pack_panel(s->matrix.type, k_, rows, out);
  }
}

void Linear::row(int column, float* out) const {
  check(segments_.size() == 1 && segments_[0].part.order.empty(), "rows are looked up where they lie as in the file");
  kernels::panel_row(segments_[0].matrix, column, out);
}

void Linear::multiply(const kernels::Ops& ops, const ActivationRows& x, int first_row, int rows, float* y, int64_t ldy,
                      int first_panel, int last_panel, kernels::Upcoming then) const {
  if (rows == 0) return;
  for (const Segment& s : segments_) {
    const int begin = std::max(first_panel, s.first_panel) - s.first_panel;
    const int end = std::min(last_panel, s.first_panel + s.matrix.panels) - s.first_panel;
    if (begin >= end) continue;
    kernels::Upcoming next = s.first_panel + end < last_panel ? upcoming(s.first_panel + end) : then;
    next.later = then.later;
    float* out = y + first_row * ldy + s.first_panel * kernels::kLanes;
    const int64_t first_block = static_cast<int64_t>(first_row) * (k_ / kernels::kBlock);
    switch (s.activations) {
      case Activations::int8: ops.matmul_int8(s.matrix, x.int8 + first_block, rows, out, ldy, begin, end, next); break;
      case Activations::bf16: ops.matmul_bf16(s.matrix, x.bf16 + first_block, rows, out, ldy, begin, end, next); break;
      case Activations::f32:
        ops.matmul_f32(s.matrix, x.f32 + first_row * x.f32_stride, x.f32_stride, rows, out, ldy, begin, end, next);
        break;
    }
  }
}

kernels::Upcoming Linear::upcoming(int panel) const {
  for (const Segment& s : segments_) {
    const int own = panel - s.first_panel;
    if (own < 0 || own >= s.matrix.panels) continue;
    const int some = std::min(2, s.matrix.panels - own);
    return {s.matrix.data + s.matrix.panel_bytes * static_cast<size_t>(own), s.matrix.panel_bytes * static_cast<size_t>(some)};
  }
  return {};
}

}  // namespace unisono::model

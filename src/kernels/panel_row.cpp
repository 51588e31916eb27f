#include "kernels/panel_row.h"

#include <array>
#include <cstring>
#include <type_traits>

#include "base/check.h"
#include "kernels/pack.h"
#include "kernels/quant.h"

namespace unisono::kernels {

namespace {

using Quants = std::array<uint8_t, kBlock>;

// ---- a lane's quantised values of one block, as pack.cpp put them

Quants bytes(const uint8_t (&rows)[8][64], size_t lane) {
  Quants q;
  for (size_t g = 0; g < 8; g++) std::memcpy(&q[4 * g], &rows[g][4 * lane], 4);
  return q;
}
Quants nibbles(const uint8_t (&rows)[4][64], size_t lane) {
  Quants q;
  for (size_t g = 0; g < 4; g++)
    for (size_t j = 0; j < 4; j++) {
      const uint8_t two = rows[g][4 * lane + j];
      q[4 * g + j] = two & 15;
      q[4 * (g + 4) + j] = two >> 4;
    }
  return q;
}
Quants five_bits(const uint8_t (&rows)[4][64], const uint8_t (&high)[64], size_t lane) {
  Quants q = nibbles(rows, lane);
  for (size_t i = 0; i < kBlock; i++) q[i] = static_cast<uint8_t>(q[i] | (high[4 * lane + i % 4] >> (i / 4) & 1) << 4);
  return q;
}
Quants six_bits(const uint8_t (&rows)[2][3][64], size_t lane) {
  Quants q{};
  for (size_t half = 0; half < 2; half++)
    for (size_t g = 0; g < 3; g++)
      for (size_t j = 0; j < 4; j++) {
        const uint8_t byte = rows[half][g][4 * lane + j];
        uint8_t* of_half = q.data() + 16 * half;
        of_half[4 * g + j] = byte & 63;
        of_half[12 + j] = static_cast<uint8_t>(of_half[12 + j] | byte >> 6 << (4 - 2 * g));
      }
  return q;
}

// ---- a block's values, as GGUF defines them: each step rounded

void scaled(const uint8_t* q, size_t n, int zero, float d, float* out) {
  for (size_t i = 0; i < n; i++) out[i] = d * static_cast<float>(q[i] - zero);
}
void scaled(const Quants& q, int zero, uint16_t d, float* out) { scaled(q.data(), kBlock, zero, half_to_float(d), out); }
void scaled_above(const Quants& q, float d, float min, float* out) {
  scaled(q.data(), kBlock, 0, d, out);
  for (size_t i = 0; i < kBlock; i++) out[i] += min;
}

void block(const PanelQ8_0& u, size_t b, size_t lane, float* out) { scaled(bytes(u.q[b], lane), 128, u.d[b][lane], out); }
void block(const PanelQ4_0& u, size_t b, size_t lane, float* out) { scaled(nibbles(u.q[b], lane), 8, u.d[b][lane], out); }
void block(const PanelQ5_0& u, size_t b, size_t lane, float* out) {
  scaled(five_bits(u.q[b], u.high[b], lane), 16, u.d[b][lane], out);
}
void block(const PanelQ4_1& u, size_t b, size_t lane, float* out) {
  scaled_above(nibbles(u.q[b], lane), half_to_float(u.d[b][lane]), half_to_float(u.m[b][lane]), out);
}
void block(const PanelQ5_1& u, size_t b, size_t lane, float* out) {
  scaled_above(five_bits(u.q[b], u.high[b], lane), half_to_float(u.d[b][lane]), half_to_float(u.m[b][lane]), out);
}
template <class Panel>
void k_block(const Panel& u, const Quants& q, size_t b, size_t lane, float* out) {
  scaled_above(q, half_to_float(u.d[lane]) * static_cast<float>(u.scale[b][lane]),
               -(half_to_float(u.dmin[lane]) * static_cast<float>(u.min[b][lane])), out);
}
void block(const PanelQ4K& u, size_t b, size_t lane, float* out) { k_block(u, nibbles(u.q[b], lane), b, lane, out); }
void block(const PanelQ5K& u, size_t b, size_t lane, float* out) {
  k_block(u, five_bits(u.q[b], u.high[b], lane), b, lane, out);
}
void block(const PanelQ6K& u, size_t b, size_t lane, float* out) {
  const Quants q = six_bits(u.q[b], lane);
  for (size_t half = 0; half < 2; half++)
    scaled(q.data() + 16 * half, 16, 32, half_to_float(u.d[lane]) * static_cast<float>(u.scale[b][half][lane]),
           out + 16 * half);
}

template <class Panel>
void blocks(const std::byte* panel, size_t lane, int k, float* out) {
  constexpr size_t in_unit = std::extent_v<decltype(Panel::q)>;
  const auto* units = reinterpret_cast<const Panel*>(panel);
  for (size_t b = 0; b < static_cast<size_t>(k) / kBlock; b++)
    block(units[b / in_unit], b % in_unit, lane, out + kBlock * b);
}

}  // namespace

void panel_row(const PanelMatrix& w, int row, float* out) {
  const std::byte* panel = w.data + w.panel_bytes * static_cast<size_t>(row / kLanes);
  const auto lane = static_cast<size_t>(row % kLanes);
  switch (w.type) {
    case DType::f32:
      for (size_t i = 0; i < static_cast<size_t>(w.k); i++)
        out[i] = reinterpret_cast<const float*>(panel)[kLanes * i + lane];
      return;
    case DType::f16:
      for (size_t i = 0; i < static_cast<size_t>(w.k); i++)
        out[i] = half_to_float(reinterpret_cast<const uint16_t*>(panel)[kLanes * i + lane]);
      return;
    case DType::bf16:
      for (size_t i = 0; i < static_cast<size_t>(w.k); i++)
        out[i] = bf16_to_float(reinterpret_cast<const uint16_t*>(panel)[bf16_place(i, lane)]);
      return;
    case DType::q8_0: return blocks<PanelQ8_0>(panel, lane, w.k, out);
    case DType::q4_0: return blocks<PanelQ4_0>(panel, lane, w.k, out);
    case DType::q4_1: return blocks<PanelQ4_1>(panel, lane, w.k, out);
    case DType::q5_0: return blocks<PanelQ5_0>(panel, lane, w.k, out);
    case DType::q5_1: return blocks<PanelQ5_1>(panel, lane, w.k, out);
    case DType::q4_k: return blocks<PanelQ4K>(panel, lane, w.k, out);
    case DType::q5_k: return blocks<PanelQ5K>(panel, lane, w.k, out);
    case DType::q6_k: return blocks<PanelQ6K>(panel, lane, w.k, out);
  }
  check(false, "panel_row() of an unknown type");
}

}  // namespace unisono::kernels

// Weights as the kernels read them: panels of 16 output rows ("lanes"), K running inside in blocks of 32. The bits of the
// file's quantised values and scales are kept exactly; only their order in memory changes. Plain data, no code.
//
// A row of 64 bytes in a block holds 4 consecutive k for 16 lanes: byte 4 * lane + j is value k0 + j of that lane. Blocks
// stand in units that begin on a cache line, so that no such row crosses one. Nibble rows hold two groups of 4 k: row r has
// group r (k = 4r .. 4r + 3) in its low and group r + 4 in its high halves.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/tensor.h"

namespace unisono::kernels {

inline constexpr int kLanes = 16;
inline constexpr int kBlock = 32;  // values that share a scale

// A weight matrix [n][k] packed from a tensor; views memory owned elsewhere.
struct PanelMatrix {
  DType type = DType::f32;
  int n = 0;       // output rows; the last panel is filled up with zero rows
  int k = 0;       // values of a row
  int panels = 0;  // ceil(n / 16)
  size_t panel_bytes = 0;
  const std::byte* data = nullptr;  // [panels][panel_bytes], aligned to 64
};

// f16 values are kept as their bits.
struct alignas(64) PanelQ8_0 {  // value = d * (q - 128)
  uint16_t d[2][16];
  uint8_t q[2][8][64];
};
struct alignas(64) PanelQ4_0 {  // d * (q - 8)
  uint16_t d[2][16];
  uint8_t q[2][4][64];
};
struct alignas(64) PanelQ4_1 {  // d * q + m
  uint16_t d[2][16];
  uint16_t m[2][16];
  uint8_t q[2][4][64];
};
struct alignas(64) PanelQ5_0 {  // d * (q - 16); bit 4 of the values of group g: bit g of their bytes of high
  uint16_t d[2][16];
  uint8_t high[2][64];
  uint8_t q[2][4][64];
};
struct alignas(64) PanelQ5_1 {  // d * q + m
  uint16_t d[2][16];
  uint16_t m[2][16];
  uint8_t high[2][64];
  uint8_t q[2][4][64];
};
struct alignas(64) PanelQ4K {  // d * scale * q - dmin * min, eight blocks of 32
  uint16_t d[16];
  uint16_t dmin[16];
  uint8_t scale[8][16];
  uint8_t min[8][16];
  uint8_t q[8][4][64];
};
struct alignas(64) PanelQ5K {
  uint16_t d[16];
  uint16_t dmin[16];
  uint8_t scale[8][16];
  uint8_t min[8][16];
  uint8_t high[8][64];
  uint8_t q[8][4][64];
};
struct alignas(64) PanelQ6K {  // d * scale * (q - 32), a scale for 16 values
  uint16_t d[16];
  uint8_t unused[32];
  int8_t scale[8][2][16];
  uint8_t q[8][2][3][64];  // of four groups, three whole; above them the fourth's bits 4 and 5, 2 and 3, 0 and 1
};
static_assert(sizeof(PanelQ8_0) == 1088 && sizeof(PanelQ4_0) == 576 && sizeof(PanelQ4_1) == 640);
static_assert(sizeof(PanelQ5_0) == 704 && sizeof(PanelQ5_1) == 768);
static_assert(sizeof(PanelQ4K) == 2368 && sizeof(PanelQ5K) == 2880 && sizeof(PanelQ6K) == 3392);
// F32 and F16 panels are [k][16 lanes] of the type. BF16 panels are [k / 2][16 lanes][2]: of each four k, the pairs (0, 2),
// then (1, 3), as the integers above fall into pairs.

// Activations, one layout for every batch size and weight type: token after token, a block per 32 values.
struct QuantBlock {
  float scale;
  float scaled_sum;       // scale times the sum of q
  int32_t minus_sum;      // minus the sum of q
  int32_t minus_sum_low;  // of the first 16
  int8_t q[kBlock];
};
static_assert(sizeof(QuantBlock) == 48);

// The same in bf16. Each four values stand in the order 0 2 1 3.
struct Bf16Block {
  float sum;  // of the rounded values
  uint16_t v[kBlock];
};
static_assert(sizeof(Bf16Block) == 68);

}  // namespace unisono::kernels

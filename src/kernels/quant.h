// The block formats of GGUF tensors as they lie in a file, and their exact scalar decoders. The reference every packed
// kernel is tested against; it never runs in a hot loop and uses neither intrinsics nor libm.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>

#include "base/tensor.h"

namespace unisono::kernels {

// Scales (`d`, `m`, `dmin`) are IEEE binary16 bits. Nibbles of the 32-element blocks: byte i holds element i in its low
// half and element i + 16 in its high half; bit i of `qh` is the fifth bit of element i.

struct BlockQ8_0 {  // d * q
  uint16_t d;
  int8_t q[32];
};

struct BlockQ4_0 {  // d * (q - 8)
  uint16_t d;
  uint8_t q[16];
};

struct BlockQ4_1 {  // d * q + m
  uint16_t d;
  uint16_t m;
  uint8_t q[16];
};

struct BlockQ5_0 {  // d * (q - 16)
  uint16_t d;
  uint8_t qh[4];
  uint8_t q[16];
};

struct BlockQ5_1 {  // d * q + m
  uint16_t d;
  uint16_t m;
  uint8_t qh[4];
  uint8_t q[16];
};

// Eight sub-blocks of 32. Bytes 32p to 32p + 31 of `q` hold sub-block 2p in their low halves, 2p + 1 in their high ones.
struct BlockQ4K {  // (d * scale) * q - dmin * min
  uint16_t d;
  uint16_t dmin;
  uint8_t scales[12];  // see unpack_k_scales
  uint8_t q[128];
};

struct BlockQ5K {  // (d * scale) * q - dmin * min; bit s of qh[i] is the fifth bit of element i of sub-block s
  uint16_t d;
  uint16_t dmin;
  uint8_t scales[12];
  uint8_t qh[32];
  uint8_t q[128];
};

// Two halves of 128 elements. In each, element r has its low four bits in ql[r % 64] (low half of the byte for r < 64)
// and its high two bits at bit 2 * (r / 32) of qh[r % 32].
struct BlockQ6K {  // (d * scale) * (q - 32)
  uint8_t ql[128];
  uint8_t qh[64];
  int8_t scales[16];  // one for each 16 elements
  uint16_t d;
};

static_assert(sizeof(BlockQ8_0) == 34 && sizeof(BlockQ4_0) == 18 && sizeof(BlockQ4_1) == 20);
static_assert(sizeof(BlockQ5_0) == 22 && sizeof(BlockQ5_1) == 24);
static_assert(sizeof(BlockQ4K) == 144 && sizeof(BlockQ5K) == 176 && sizeof(BlockQ6K) == 210);

// Exact. A NaN keeps its sign and payload and becomes quiet, as the conversion instructions do. Subnormals are built from
// integers, so the result is the same whether the thread flushes denormals or not.
inline float half_to_float(uint16_t half) {
  const uint32_t sign = static_cast<uint32_t>(half & 0x8000u) << 16;
  const uint32_t exponent = (half >> 10) & 0x1Fu;
  const uint32_t fraction = half & 0x3FFu;
  if (exponent == 0x1F) {
    const uint32_t quiet = fraction == 0 ? 0 : 0x400000u;
    return std::bit_cast<float>(sign | 0x7F800000u | quiet | fraction << 13);
  }
  if (exponent != 0) return std::bit_cast<float>(sign | (exponent + 112) << 23 | fraction << 13);
  if (fraction == 0) return std::bit_cast<float>(sign);
  // fraction * 2^-24: move its highest bit to the place of the hidden one.
  const uint32_t shift = static_cast<uint32_t>(std::countl_zero(fraction)) - 21;
  return std::bit_cast<float>(sign | (113 - shift) << 23 | ((fraction << shift) & 0x3FFu) << 13);
}

// Rounds to nearest, ties to even; from 65520 on the result is infinite. A NaN keeps its sign and the top of its payload
// and becomes quiet.
inline uint16_t float_to_half(float value) {
  const uint32_t bits = std::bit_cast<uint32_t>(value);
  const uint32_t sign = bits >> 16 & 0x8000u;
  const uint32_t magnitude = bits & 0x7FFFFFFFu;
  if (magnitude > 0x7F800000u) return static_cast<uint16_t>(sign | 0x7E00u | (magnitude >> 13 & 0x1FFu));
  if (magnitude >= 0x47800000u) return static_cast<uint16_t>(sign | 0x7C00u);  // 2^16 and above
  uint32_t kept = 0;
  uint32_t dropped = 0;            // the bits below the last kept one
  uint32_t tie = 0;                // what half of the last kept bit is worth
  if (magnitude >= 0x38800000u) {  // 2^-14 and above: a normal half
    kept = (magnitude - 0x38000000u) >> 13;
    dropped = magnitude & 0x1FFFu;
    tie = 0x1000u;
  } else if (magnitude >= 0x33000000u) {  // 2^-25 and above: may round to a subnormal
    const uint32_t fraction = (magnitude & 0x7FFFFFu) | 0x800000u;
    const uint32_t shift = 126 - (magnitude >> 23);
    kept = fraction >> shift;
    dropped = fraction & ((1u << shift) - 1);
    tie = 1u << (shift - 1);
  }
  // A carry out of the fraction moves to the next exponent, and from the largest half to infinity: both are right.
  const bool up = dropped > tie || (dropped == tie && (kept & 1) != 0 && tie != 0);
  return static_cast<uint16_t>(sign | (kept + (up ? 1u : 0u)));
}

// Exact, NaN payloads included.
inline float bf16_to_float(uint16_t bf16) { return std::bit_cast<float>(static_cast<uint32_t>(bf16) << 16); }

// The 6-bit scales and mins of the eight sub-blocks of a Q4_K or Q5_K block.
void unpack_k_scales(const uint8_t packed[12], uint8_t scales[8], uint8_t mins[8]);

// Decodes n elements (a multiple of the type's block) of a row; `row` may have any alignment. Equal to the gguf package's
// numpy decoder bit for bit: each formula above in f32, rounded after every operation.
void dequantise_row(DType type, const std::byte* row, int64_t n, float* out);

}  // namespace unisono::kernels

// Decodes rows of every element type, one block at a time, in the plainest way.
#include "kernels/quant.h"

#include <cstring>

#include "base/check.h"

namespace unisono::kernels {

void unpack_k_scales(const uint8_t packed[12], uint8_t scales[8], uint8_t mins[8]) {
  for (int i = 0; i < 4; i++) {
    const uint8_t scale = packed[i];
    const uint8_t min = packed[i + 4];
    const uint8_t low = packed[i + 8];  // the low four bits of scale i + 4 and of min i + 4
    scales[i] = scale & 0x3F;
    mins[i] = min & 0x3F;
    scales[i + 4] = static_cast<uint8_t>((low & 0x0F) | (scale >> 6) << 4);
    mins[i + 4] = static_cast<uint8_t>((low >> 4) | (min >> 6) << 4);
  }
}

namespace {

int nibble(const uint8_t* q, int element) { return element < 16 ? q[element] & 0x0F : q[element - 16] >> 4; }

int five_bits(const uint8_t* q, const uint8_t* qh, int element) {
  return nibble(q, element) | (qh[element / 8] >> (element % 8) & 1) << 4;
}

void decode(const BlockQ8_0& b, float* out) {
  const float d = half_to_float(b.d);
  for (int i = 0; i < 32; i++) out[i] = d * static_cast<float>(b.q[i]);
}

void decode(const BlockQ4_0& b, float* out) {
  const float d = half_to_float(b.d);
  for (int i = 0; i < 32; i++) out[i] = d * static_cast<float>(nibble(b.q, i) - 8);
}

void decode(const BlockQ4_1& b, float* out) {
  const float d = half_to_float(b.d);
  const float m = half_to_float(b.m);
  for (int i = 0; i < 32; i++) out[i] = d * static_cast<float>(nibble(b.q, i)) + m;
}

void decode(const BlockQ5_0& b, float* out) {
  const float d = half_to_float(b.d);
  for (int i = 0; i < 32; i++) out[i] = d * static_cast<float>(five_bits(b.q, b.qh, i) - 16);
}

void decode(const BlockQ5_1& b, float* out) {
  const float d = half_to_float(b.d);
  const float m = half_to_float(b.m);
  for (int i = 0; i < 32; i++) out[i] = d * static_cast<float>(five_bits(b.q, b.qh, i)) + m;
}

// `qh` is null for Q4_K, which has no fifth bits.
void decode_k(uint16_t d_bits, uint16_t dmin_bits, const uint8_t* packed, const uint8_t* qh, const uint8_t* q, float* out) {
  const float d = half_to_float(d_bits);
  const float dmin = half_to_float(dmin_bits);
  uint8_t scales[8];
  uint8_t mins[8];
  unpack_k_scales(packed, scales, mins);
  for (int sub = 0; sub < 8; sub++) {
    const float scale = d * static_cast<float>(scales[sub]);
    const float min = dmin * static_cast<float>(mins[sub]);
    const uint8_t* bytes = q + 32 * (sub / 2);
    for (int i = 0; i < 32; i++) {
      const int low = bytes[i] >> (4 * (sub % 2)) & 0x0F;
      const int high = qh == nullptr ? 0 : qh[i] >> sub & 1;
      out[32 * sub + i] = scale * static_cast<float>(low | high << 4) - min;
    }
  }
}

void decode(const BlockQ4K& b, float* out) { decode_k(b.d, b.dmin, b.scales, nullptr, b.q, out); }

void decode(const BlockQ5K& b, float* out) { decode_k(b.d, b.dmin, b.scales, b.qh, b.q, out); }

void decode(const BlockQ6K& b, float* out) {
  const float d = half_to_float(b.d);
  for (int i = 0; i < 256; i++) {
    const int half = i / 128;
    const int r = i % 128;
    const int low = b.ql[64 * half + r % 64] >> (r < 64 ? 0 : 4) & 0x0F;
    const int high = b.qh[32 * half + r % 32] >> (2 * (r / 32)) & 3;
    const float scale = d * static_cast<float>(b.scales[i / 16]);
    out[i] = scale * static_cast<float>((low | high << 4) - 32);
  }
}

struct Half {
  uint16_t bits;
};
struct BFloat16 {
  uint16_t bits;
};
void decode(Half h, float* out) { *out = half_to_float(h.bits); }
void decode(BFloat16 b, float* out) { *out = bf16_to_float(b.bits); }

template <class Block>
void decode_blocks(const std::byte* row, int64_t n, int64_t block_elems, float* out) {
  for (int64_t i = 0; i < n; i += block_elems) {
    Block block;
    std::memcpy(&block, row, sizeof(Block));
    decode(block, out + i);
    row += sizeof(Block);
  }
}

}  // namespace

void dequantise_row(DType type, const std::byte* row, int64_t n, float* out) {
  check(n >= 0 && n % info(type).block_elems == 0, "dequantise_row() of a part of a block");
  if (n == 0) return;
  switch (type) {
    case DType::f32: std::memcpy(out, row, static_cast<size_t>(n) * sizeof(float)); return;
    case DType::f16: return decode_blocks<Half>(row, n, 1, out);
    case DType::bf16: return decode_blocks<BFloat16>(row, n, 1, out);
    case DType::q8_0: return decode_blocks<BlockQ8_0>(row, n, 32, out);
    case DType::q4_0: return decode_blocks<BlockQ4_0>(row, n, 32, out);
    case DType::q4_1: return decode_blocks<BlockQ4_1>(row, n, 32, out);
    case DType::q5_0: return decode_blocks<BlockQ5_0>(row, n, 32, out);
    case DType::q5_1: return decode_blocks<BlockQ5_1>(row, n, 32, out);
    case DType::q4_k: return decode_blocks<BlockQ4K>(row, n, 256, out);
    case DType::q5_k: return decode_blocks<BlockQ5K>(row, n, 256, out);
    case DType::q6_k: return decode_blocks<BlockQ6K>(row, n, 256, out);
  }
  check(false, "dequantise_row() of an unknown type");
}

}  // namespace unisono::kernels

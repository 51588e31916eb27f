#include "kernels/pack.h"

#include <array>
#include <bit>
#include <cstring>

#include "base/check.h"
#include "kernels/quant.h"

namespace unisono::kernels {

namespace {

using Quants = std::array<uint8_t, kBlock>;

// ---- one block of 32 of a row in the file: its quantised values as unsigned numbers, and its scales into the panel

Quants nibble_quants(const uint8_t* q) {
  Quants out;
  for (size_t i = 0; i < 16; i++) {
    out[i] = q[i] & 15;
    out[i + 16] = q[i] >> 4;
  }
  return out;
}
void add_fifth_bits(Quants& q, const uint8_t* qh) {
  uint32_t bits;
  std::memcpy(&bits, qh, 4);
  for (size_t i = 0; i < kBlock; i++) q[i] = static_cast<uint8_t>(q[i] | (bits >> i & 1) << 4);
}

void put_bytes(uint8_t (&rows)[8][64], int lane, const Quants& q) {
  for (size_t g = 0; g < 8; g++) std::memcpy(&rows[g][4 * lane], &q[4 * g], 4);
}
void put_nibbles(uint8_t (&rows)[4][64], int lane, const Quants& q) {
  for (size_t g = 0; g < 4; g++)
    for (size_t j = 0; j < 4; j++)
      rows[g][static_cast<size_t>(4 * lane) + j] = static_cast<uint8_t>((q[4 * g + j] & 15) | (q[4 * (g + 4) + j] & 15) << 4);
}
void put_fifth_bits(uint8_t (&high)[64], int lane, const Quants& q) {
  for (size_t j = 0; j < 4; j++) {
    int bits = 0;
    for (size_t g = 0; g < 8; g++) bits |= (q[4 * g + j] >> 4) << g;
    high[static_cast<size_t>(4 * lane) + j] = static_cast<uint8_t>(bits);
  }
}

void put(PanelQ8_0& u, size_t b, int lane, const BlockQ8_0& block) {
  u.d[b][lane] = block.d;
  Quants q;
  for (size_t i = 0; i < kBlock; i++) q[i] = static_cast<uint8_t>(block.q[i] + 128);
  put_bytes(u.q[b], lane, q);
}
void put(PanelQ4_0& u, size_t b, int lane, const BlockQ4_0& block) {
  u.d[b][lane] = block.d;
  put_nibbles(u.q[b], lane, nibble_quants(block.q));
}
void put(PanelQ4_1& u, size_t b, int lane, const BlockQ4_1& block) {
  u.d[b][lane] = block.d;
  u.m[b][lane] = block.m;
  put_nibbles(u.q[b], lane, nibble_quants(block.q));
}
void put(PanelQ5_0& u, size_t b, int lane, const BlockQ5_0& block) {
  u.d[b][lane] = block.d;
  Quants q = nibble_quants(block.q);
  add_fifth_bits(q, block.qh);
  put_nibbles(u.q[b], lane, q);
  put_fifth_bits(u.high[b], lane, q);
}
void put(PanelQ5_1& u, size_t b, int lane, const BlockQ5_1& block) {
  u.d[b][lane] = block.d;
  u.m[b][lane] = block.m;
  Quants q = nibble_quants(block.q);
  add_fifth_bits(q, block.qh);
  put_nibbles(u.q[b], lane, q);
  put_fifth_bits(u.high[b], lane, q);
}

// The K types: a block of the file is a whole unit of eight blocks.
template <class Panel, class Block>
void put_k_scales(Panel& u, int lane, const Block& block) {
  u.d[lane] = block.d;
  u.dmin[lane] = block.dmin;
  uint8_t scales[8], mins[8];
  unpack_k_scales(block.scales, scales, mins);
  for (size_t b = 0; b < 8; b++) {
    u.scale[b][lane] = scales[b];
    u.min[b][lane] = mins[b];
  }
}
Quants k_nibbles(const uint8_t* q, size_t b) {
  Quants out;
  for (size_t i = 0; i < kBlock; i++) {
    const uint8_t byte = q[32 * (b / 2) + i];
    out[i] = b % 2 == 0 ? byte & 15 : byte >> 4;
  }
  return out;
}
void put_unit(PanelQ4K& u, int lane, const BlockQ4K& block) {
  put_k_scales(u, lane, block);
  for (size_t b = 0; b < 8; b++) put_nibbles(u.q[b], lane, k_nibbles(block.q, b));
}
void put_unit(PanelQ5K& u, int lane, const BlockQ5K& block) {
  put_k_scales(u, lane, block);
  for (size_t b = 0; b < 8; b++) {
    Quants q = k_nibbles(block.q, b);
    for (size_t i = 0; i < kBlock; i++) q[i] = static_cast<uint8_t>(q[i] | (block.qh[i] >> b & 1) << 4);
    put_nibbles(u.q[b], lane, q);
    put_fifth_bits(u.high[b], lane, q);
  }
}
void put_unit(PanelQ6K& u, int lane, const BlockQ6K& block) {
  u.d[lane] = block.d;
  for (size_t b = 0; b < 8; b++) {
    u.scale[b][0][lane] = block.scales[2 * b];
    u.scale[b][1][lane] = block.scales[2 * b + 1];
    Quants q;
    for (size_t i = 0; i < kBlock; i++) {
      const size_t half = b / 4, r = 32 * (b % 4) + i;  // element r of its half of 128
      const uint8_t low = block.ql[64 * half + r % 64];
      q[i] = static_cast<uint8_t>((r < 64 ? low & 15 : low >> 4) | (block.qh[32 * half + r % 32] >> (2 * (r / 32)) & 3) << 4);
    }
    for (size_t i = 0; i < kBlock; i += 16)  // four groups
      for (size_t g = 0; g < 3; g++)
        for (size_t j = 0; j < 4; j++)
          u.q[b][i / 16][g][static_cast<size_t>(4 * lane) + j] =
              static_cast<uint8_t>(q[i + 4 * g + j] | (q[i + 12 + j] >> (4 - 2 * g) & 3) << 6);
  }
}

template <class Panel, class Block>
void pack_pairs(int64_t k, std::span<const std::byte* const, kLanes> rows, std::byte* out) {
  auto* units = reinterpret_cast<Panel*>(out);
  for (int lane = 0; lane < kLanes; lane++) {
    const std::byte* row = rows[static_cast<size_t>(lane)];
    if (row == nullptr) continue;
    for (int64_t b = 0; b < k / kBlock; b++) {
      Block block;
      std::memcpy(&block, row + static_cast<size_t>(b) * sizeof block, sizeof block);
      put(units[b / 2], static_cast<size_t>(b % 2), lane, block);
    }
  }
}
template <class Panel, class Block>
void pack_units(int64_t k, std::span<const std::byte* const, kLanes> rows, std::byte* out) {
  auto* units = reinterpret_cast<Panel*>(out);
  for (int lane = 0; lane < kLanes; lane++) {
    const std::byte* row = rows[static_cast<size_t>(lane)];
    if (row == nullptr) continue;
    for (int64_t u = 0; u < k / 256; u++) {
      Block block;
      std::memcpy(&block, row + static_cast<size_t>(u) * sizeof block, sizeof block);
      put_unit(units[u], lane, block);
    }
  }
}
template <class T>
void pack_plain(int64_t k, std::span<const std::byte* const, kLanes> rows, std::byte* out) {
  auto* panel = reinterpret_cast<T*>(out);
  for (size_t lane = 0; lane < kLanes; lane++) {
    if (rows[lane] == nullptr) continue;
    for (int64_t i = 0; i < k; i++)
      std::memcpy(panel + kLanes * i + static_cast<int64_t>(lane), rows[lane] + static_cast<size_t>(i) * sizeof(T), sizeof(T));
  }
}
// convert: from a value's 16 bits in the file to those of a bf16.
template <class Convert>
void pack_bf16(int64_t k, std::span<const std::byte* const, kLanes> rows, std::byte* out, Convert convert) {
  auto* panel = reinterpret_cast<uint16_t*>(out);
  for (size_t lane = 0; lane < kLanes; lane++) {
    const std::byte* row = rows[lane];
    if (row == nullptr) continue;
    for (size_t i = 0; i < static_cast<size_t>(k); i++) {
      uint16_t bits;
      std::memcpy(&bits, row + 2 * i, 2);
      panel[bf16_place(i, lane)] = convert(bits);
    }
  }
}

size_t units(int64_t k, int64_t per_unit) { return static_cast<size_t>((k + per_unit - 1) / per_unit); }

}  // namespace

size_t panel_bytes(DType type, int64_t k) {
  switch (type) {
    case DType::f32: return units(k, kBlock) * kBlock * kLanes * 4;
    case DType::f16:
    case DType::bf16: return units(k, kBlock) * kBlock * kLanes * 2;
    case DType::q8_0: return units(k, 64) * sizeof(PanelQ8_0);
    case DType::q4_0: return units(k, 64) * sizeof(PanelQ4_0);
    case DType::q4_1: return units(k, 64) * sizeof(PanelQ4_1);
    case DType::q5_0: return units(k, 64) * sizeof(PanelQ5_0);
    case DType::q5_1: return units(k, 64) * sizeof(PanelQ5_1);
    case DType::q4_k: return units(k, 256) * sizeof(PanelQ4K);
    case DType::q5_k: return units(k, 256) * sizeof(PanelQ5K);
    case DType::q6_k: return units(k, 256) * sizeof(PanelQ6K);
  }
  check(false, "panel_bytes: every type has a panel");
  return 0;
}

void pack_panel(DType type, int64_t k, std::span<const std::byte* const, kLanes> rows, std::byte* out) {
  switch (type) {
    case DType::f32: return pack_plain<uint32_t>(k, rows, out);
    case DType::f16: return pack_plain<uint16_t>(k, rows, out);
    case DType::bf16: return pack_bf16(k, rows, out, [](uint16_t bits) { return bits; });
    case DType::q8_0: return pack_pairs<PanelQ8_0, BlockQ8_0>(k, rows, out);
    case DType::q4_0: return pack_pairs<PanelQ4_0, BlockQ4_0>(k, rows, out);
    case DType::q4_1: return pack_pairs<PanelQ4_1, BlockQ4_1>(k, rows, out);
    case DType::q5_0: return pack_pairs<PanelQ5_0, BlockQ5_0>(k, rows, out);
    case DType::q5_1: return pack_pairs<PanelQ5_1, BlockQ5_1>(k, rows, out);
    case DType::q4_k: return pack_units<PanelQ4K, BlockQ4K>(k, rows, out);
    case DType::q5_k: return pack_units<PanelQ5K, BlockQ5K>(k, rows, out);
    case DType::q6_k: return pack_units<PanelQ6K, BlockQ6K>(k, rows, out);
  }
}

bool halves_are_bf16(const std::byte* data, int64_t n) {
  for (int64_t i = 0; i < n; i++) {
    uint16_t half;
    std::memcpy(&half, data + 2 * i, 2);
    if ((std::bit_cast<uint32_t>(half_to_float(half)) & 0xffff) != 0) return false;
  }
  return true;
}

void pack_halves_as_bf16(int64_t k, std::span<const std::byte* const, kLanes> rows, std::byte* out) {
  pack_bf16(k, rows, out, [](uint16_t half) { return static_cast<uint16_t>(std::bit_cast<uint32_t>(half_to_float(half)) >> 16); });
}

}  // namespace unisono::kernels

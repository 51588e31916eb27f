// Random tensors for kernel tests, the same on every machine.
#pragma once

#include <cmath>
#include <cstring>
#include <random>
#include <vector>

#include "base/buffer.h"
#include "kernels/ops.h"
#include "kernels/pack.h"
#include "kernels/quant.h"

namespace unisono::kernels {

inline constexpr DType kAllTypes[] = {DType::f32,  DType::f16,  DType::bf16, DType::q8_0, DType::q4_0, DType::q4_1,
                                      DType::q5_0, DType::q5_1, DType::q4_k, DType::q5_k, DType::q6_k};

inline bool is_quantised(DType type) { return info(type).block_elems > 1; }

inline std::vector<float> random_floats(size_t n, uint32_t seed, float size = 1) {
  std::mt19937 random(seed);
  std::vector<float> x(n);
  for (auto& v : x) v = (static_cast<float>(random() % 20001) / 10000 - 1) * size;
  return x;
}

// The bytes of a [n][k] tensor as they would lie in a file: random quants, sensible scales.
struct FileTensor {
  DType type;
  int64_t n, k;
  std::vector<std::byte> bytes;

  const std::byte* row(int64_t i) const { return bytes.data() + static_cast<size_t>(i) * row_bytes(); }
  size_t row_bytes() const { return static_cast<size_t>(k / info(type).block_elems * info(type).block_bytes); }
};

inline FileTensor random_tensor(DType type, int64_t n, int64_t k, uint32_t seed) {
  FileTensor t{type, n, k, {}};
  std::mt19937 random(seed);
  t.bytes.resize(static_cast<size_t>(n) * t.row_bytes());
  for (auto& b : t.bytes) b = static_cast<std::byte>(random());
  auto small_half = [&] { return float_to_half((static_cast<float>(random() % 2001) - 1000) * 1e-5f); };
  auto put = [&](size_t at, uint16_t half) { std::memcpy(&t.bytes[at], &half, 2); };
  const size_t block = static_cast<size_t>(info(type).block_bytes);
  if (type == DType::f32) {
    const auto x = random_floats(static_cast<size_t>(n * k), seed);
    std::memcpy(t.bytes.data(), x.data(), t.bytes.size());
    return t;
  }
  for (size_t at = 0; at < t.bytes.size(); at += block) {
    switch (type) {
      case DType::f16: put(at, float_to_half((static_cast<float>(random() % 2001) - 1000) * 1e-3f)); break;
      case DType::bf16: put(at, static_cast<uint16_t>(0x3c00 + (random() & 0x83ff))); break;
      case DType::q6_k: put(at + 208, small_half()); break;
      default:
        put(at, small_half());
        if (type != DType::q8_0 && type != DType::q4_0 && type != DType::q5_0) put(at + 2, small_half());
    }
  }
  return t;
}

struct Packed {
  Buffer memory;
  PanelMatrix matrix;
};

inline Packed pack(const FileTensor& t) {
  Packed p;
  const int panels = panel_count(t.n);
  p.matrix = {t.type, static_cast<int>(t.n), static_cast<int>(t.k), panels, panel_bytes(t.type, t.k), nullptr};
  p.memory = Buffer(p.matrix.panel_bytes * static_cast<size_t>(panels));
  p.matrix.data = p.memory.data();
  for (int i = 0; i < panels; i++) {
    std::array<const std::byte*, kLanes> rows{};
    for (int l = 0; l < kLanes; l++)
      if (i * kLanes + l < t.n) rows[static_cast<size_t>(l)] = t.row(i * kLanes + l);
    pack_panel(t.type, t.k, rows, p.memory.data() + p.matrix.panel_bytes * static_cast<size_t>(i));
  }
  return p;
}

// Every table that runs on this machine.
inline std::vector<const Ops*> ops_here() {
  std::vector<const Ops*> here;
  for (const Ops* ops : compiled_ops())
    if (ops->runs_here()) here.push_back(ops);
  return here;
}

}  // namespace unisono::kernels

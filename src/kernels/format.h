// How each panel type gives a kernel its weights, on the Vec16 of one instruction set: groups of 4 k as unsigned bytes, and
// a scale (and minimum) per block. One struct per type, all of the same shape; matmul.cpp is written on that shape.
#pragma once

#include "kernels/panel.h"
#include "kernels/vec16.h"

namespace unisono::kernels::KERNEL_ISA {

// value = d * (w - zero) + m, w below 2^bits. group<G>(unit, b): 4 G .. 4 G + 3 of block b of the unit.
struct FormatQ8_0 {
  using Unit = PanelQ8_0;
  static constexpr int blocks = 2, bits = 8, zero = 128;
  static constexpr bool has_min = false, half_scales = false;
  template <int G>
  static UNISONO_INLINE Bytes group(const Unit& u, int b) {
    return load_bytes(u.q[b][G]);
  }
  static UNISONO_INLINE Vec scale(const Unit& u, int b) { return load_half(u.d[b]); }
};

template <int G, class Unit>
UNISONO_INLINE Bytes nibbles(const Unit& u, int b) {
  if constexpr (G < 4) {
    return low_nibbles(load_bytes(u.q[b][G]));
  } else {
    return high_nibbles(load_bytes(u.q[b][G - 4]));
  }
}

template <int G, class Unit>
UNISONO_INLINE Bytes five_bits(const Unit& u, int b) {
  return add_bit4<G>(nibbles<G>(u, b), load_bytes(u.high[b]));
}

struct FormatQ4_0 {
  using Unit = PanelQ4_0;
  static constexpr int blocks = 2, bits = 4, zero = 8;
  static constexpr bool has_min = false, half_scales = false;
  template <int G>
  static UNISONO_INLINE Bytes group(const Unit& u, int b) {
    return nibbles<G>(u, b);
  }
  static UNISONO_INLINE Vec scale(const Unit& u, int b) { return load_half(u.d[b]); }
};
struct FormatQ4_1 {
  using Unit = PanelQ4_1;
  static constexpr int blocks = 2, bits = 4, zero = 0;
  static constexpr bool has_min = true, half_scales = false;
  template <int G>
  static UNISONO_INLINE Bytes group(const Unit& u, int b) {
    return nibbles<G>(u, b);
  }
  static UNISONO_INLINE Vec scale(const Unit& u, int b) { return load_half(u.d[b]); }
  static UNISONO_INLINE Vec min(const Unit& u, int b) { return load_half(u.m[b]); }
};
struct FormatQ5_0 {
  using Unit = PanelQ5_0;
  static constexpr int blocks = 2, bits = 5, zero = 16;
  static constexpr bool has_min = false, half_scales = false;
  template <int G>
  static UNISONO_INLINE Bytes group(const Unit& u, int b) {
    return five_bits<G>(u, b);
  }
  static UNISONO_INLINE Vec scale(const Unit& u, int b) { return load_half(u.d[b]); }
};
struct FormatQ5_1 {
  using Unit = PanelQ5_1;
  static constexpr int blocks = 2, bits = 5, zero = 0;
  static constexpr bool has_min = true, half_scales = false;
  template <int G>
  static UNISONO_INLINE Bytes group(const Unit& u, int b) {
    return five_bits<G>(u, b);
  }
  static UNISONO_INLINE Vec scale(const Unit& u, int b) { return load_half(u.d[b]); }
  static UNISONO_INLINE Vec min(const Unit& u, int b) { return load_half(u.m[b]); }
};
// An f16 times a 6-bit integer is exact in f32, so the order of these products is free.
struct FormatQ4K {
  using Unit = PanelQ4K;
  static constexpr int blocks = 8, bits = 4, zero = 0;
  static constexpr bool has_min = true, half_scales = false;
  template <int G>
  static UNISONO_INLINE Bytes group(const Unit& u, int b) {
    return nibbles<G>(u, b);
  }
  static UNISONO_INLINE Vec scale(const Unit& u, int b) { return mul(load_half(u.d), to_floats(widen(u.scale[b]))); }
  static UNISONO_INLINE Vec min(const Unit& u, int b) {
    return sub(KERNEL_ISA::zero(), mul(load_half(u.dmin), to_floats(widen(u.min[b]))));
  }
};
struct FormatQ5K {
  using Unit = PanelQ5K;
  static constexpr int blocks = 8, bits = 5, zero = 0;
  static constexpr bool has_min = true, half_scales = false;
  template <int G>
  static UNISONO_INLINE Bytes group(const Unit& u, int b) {
    return five_bits<G>(u, b);
  }
  static UNISONO_INLINE Vec scale(const Unit& u, int b) { return mul(load_half(u.d), to_floats(widen(u.scale[b]))); }
  static UNISONO_INLINE Vec min(const Unit& u, int b) {
    return sub(KERNEL_ISA::zero(), mul(load_half(u.dmin), to_floats(widen(u.min[b]))));
  }
};
// Two integer scales in a block: half_scale(u, b, h) for values 16 h .. 16 h + 15.
struct FormatQ6K {
  using Unit = PanelQ6K;
  static constexpr int blocks = 8, bits = 6, zero = 32;
  static constexpr bool has_min = false, half_scales = true;
  template <int G>
  static UNISONO_INLINE Bytes group(const Unit& u, int b) {
    const auto& q = u.q[b][G / 4];
    if constexpr (G % 4 == 3) {
      return top_pairs(load_bytes(q[0]), load_bytes(q[1]), load_bytes(q[2]));
    } else {
      return low_six_bits(load_bytes(q[G % 4]));
    }
  }
  static UNISONO_INLINE Vec scale(const Unit& u, int) { return load_half(u.d); }
  static UNISONO_INLINE Ints half_scale(const Unit& u, int b, int h) { return widen(u.scale[b][h]); }
};

// The scales of a block's two halves; where it has but one, d[0].
template <class F>
UNISONO_INLINE void block_scales(const typename F::Unit& u, int b, Vec (&d)[2]) {
  d[0] = F::scale(u, b);
  if constexpr (F::half_scales) {
    d[1] = mul(d[0], to_floats(F::half_scale(u, b, 1)));  // f16 times int8 is exact
    d[0] = mul(d[0], to_floats(F::half_scale(u, b, 0)));
  }
}

// The units of panels from one on, by block.
template <class F>
struct PanelUnits {
  PanelUnits(const PanelMatrix& w, int panel)
      : panel_units(w.panel_bytes / sizeof(typename F::Unit)),
        first(reinterpret_cast<const typename F::Unit*>(w.data) + static_cast<size_t>(panel) * panel_units) {}
  const typename F::Unit& unit(int p, int64_t b) const {
    return first[static_cast<size_t>(p) * panel_units + static_cast<size_t>(b / F::blocks)];
  }
  static int at(int64_t b) { return static_cast<int>(b % F::blocks); }  // in its unit

  size_t panel_units;
  const typename F::Unit* first;
};

// Calls visit with the format of a quantised type, and returns what it returns. Other types: nothing is called.
template <class Visit>
auto with_format(DType type, Visit visit) -> decltype(visit(FormatQ8_0{})) {
  switch (type) {
    case DType::q8_0: return visit(FormatQ8_0{});
    case DType::q4_0: return visit(FormatQ4_0{});
    case DType::q4_1: return visit(FormatQ4_1{});
    case DType::q5_0: return visit(FormatQ5_0{});
    case DType::q5_1: return visit(FormatQ5_1{});
    case DType::q4_k: return visit(FormatQ4K{});
    case DType::q5_k: return visit(FormatQ5K{});
    case DType::q6_k: return visit(FormatQ6K{});
    case DType::f32:
    case DType::f16:
    case DType::bf16: break;
  }
  return decltype(visit(FormatQ8_0{}))();
}

}  // namespace unisono::kernels::KERNEL_ISA

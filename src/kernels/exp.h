// exp and its relatives as polynomials of fused multiply-adds: the same bits on every instruction set. No libm.
#pragma once

#include "kernels/vec16.h"

namespace unisono::kernels::KERNEL_ISA {

// e^x for x in [-87, 88]; below, e^-87 (1.6e-38); above, e^88. At most 1 ulp off (tests/kernels/rows_test.cpp); exp(0) is
// exactly 1. x = n ln 2 + r with |r| <= ln 2 / 2, in two parts so that n ln 2 is subtracted without loss (Cody and Waite);
// then a Taylor polynomial of degree 7, whose remainder r^8 / 8! is below 6e-9.
UNISONO_INLINE Vec exp(Vec x) {
  x = min(max(x, set(-87.0f)), set(88.0f));
  const Ints n = round_to_ints(mul(x, set(1.44269504f)));
  const Vec nf = to_floats(n);
  Vec r = fma(nf, set(-0.693145752f), x);
  r = fma(nf, set(-1.42860677e-6f), r);
  Vec p = set(1.0f / 5040);
  p = fma(p, r, set(1.0f / 720));
  p = fma(p, r, set(1.0f / 120));
  p = fma(p, r, set(1.0f / 24));
  p = fma(p, r, set(1.0f / 6));
  p = fma(p, r, set(0.5f));
  p = fma(p, r, set(1.0f));
  p = fma(p, r, set(1.0f));
  return mul(p, from_bits(add(shift_left<23>(n), set_ints(127 << 23))));  // times 2^n, by building its bits
}

// e^x for x in [-86, 0]; below, e^-86. Off by 5e-5 of it at most, a fortieth of what rounding to bf16 takes: for what will
// be rounded so. The same as above with less of it; n is read from the bits of a sum that has no room for a fraction.
UNISONO_INLINE Vec exp_for_bf16(Vec x) {
  constexpr float kNoFraction = 12582912.0f;  // 1.5 * 2^23
  x = max(x, set(-86.0f));
  const Vec shifted = fma(x, set(1.44269504f), set(kNoFraction));
  const Vec r = fma(sub(shifted, set(kNoFraction)), set(-0.693147181f), x);
  Vec p = fma(set(1.0f / 24), r, set(1.0f / 6));
  p = fma(p, r, set(0.5f));
  p = fma(p, r, set(1.0f));
  p = fma(p, r, set(1.0f));
  return from_bits(add(to_bits(p), shift_left<23>(to_bits(shifted))));
}

}  // namespace unisono::kernels::KERNEL_ISA

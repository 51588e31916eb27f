// What is done to one row of activations: norm, rotation, gates, quantisation. Compiled once per instruction set.
#include "kernels/exp.h"
#include "kernels/isa.h"

namespace unisono::kernels::KERNEL_ISA {

namespace {

// f(values, i) for 16 values at a time, the last ones zero-filled.
template <class F>
UNISONO_INLINE void each16(int n, F f) {
  int i = 0;
  for (; i + 16 <= n; i += 16) f(i, 16);
  if (i < n) f(i, n - i);
}
UNISONO_INLINE Vec load_some(const float* p, int n) { return n == 16 ? load(p) : load_first(p, n); }
UNISONO_INLINE void store_some(float* p, Vec a, int n) { n == 16 ? store(p, a) : store_first(p, a, n); }

// N blocks, four at most: what takes all values of a block is found for these at once.
template <int N>
UNISONO_INLINE void quantise_blocks(const float* x, QuantBlock* out) {
  Vec tops[4];
  UNISONO_UNROLL for (int b = 0; b < 4; b++) tops[b] =
      b < N ? max(abs(load(x + b * kBlock)), abs(load(x + b * kBlock + 16))) : zero();
  alignas(16) float top[4], scale[4], inverse[4];
  maximum_each(tops, top);
  for (int b = 0; b < 4; b++) {
    scale[b] = top[b] / 127.0f;
    inverse[b] = scale[b] > 0 ? 127.0f / top[b] : 0.0f;  // where the scale is flushed, it could be infinite
  }
  Ints low[4], high[4];
  UNISONO_UNROLL for (int b = 0; b < 4; b++) {
    if (b >= N) {
      low[b] = high[b] = set_ints(0);
      continue;
    }
    const Vec factor = set(inverse[b]);
    low[b] = round_to_ints(mul(load(x + b * kBlock), factor));
    high[b] = round_to_ints(mul(load(x + b * kBlock + 16), factor));
    store_int8(out[b].q, low[b]);
    store_int8(out[b].q + 16, high[b]);
  }
  alignas(16) int32_t low_sum[4], high_sum[4];
  sum_each(low, low_sum);
  sum_each(high, high_sum);
  for (int b = 0; b < N; b++) {
    const int32_t sum = low_sum[b] + high_sum[b];
    out[b].scale = scale[b];
    out[b].scaled_sum = scale[b] * static_cast<float>(sum);
    out[b].minus_sum = -sum;
    out[b].minus_sum_low = -low_sum[b];
  }
}

}  // namespace

void quantise(const float* x, int64_t values, QuantBlock* out) {
  const int64_t blocks = values / kBlock;
  int64_t b = 0;
  for (; b + 4 <= blocks; b += 4) quantise_blocks<4>(x + b * kBlock, out + b);
  for (; b < blocks; b++) quantise_blocks<1>(x + b * kBlock, out + b);
}

void rounding(const float* x, int64_t values, const QuantBlock* rounded, float* y) {
  for (int64_t b = 0; b < values / kBlock; b++) {
    const Vec minus_scale = set(-rounded[b].scale);
    for (int64_t i = 0; i < kBlock; i += 16)
      store(y + b * kBlock + i, fma(to_floats(widen(rounded[b].q + i)), minus_scale, load(x + b * kBlock + i)));
  }
}

void round_bf16(const float* x, int64_t values, Bf16Block* out) {
  for (int64_t b = 0; b < values / kBlock; b++, x += kBlock) {
    store_bf16_fours(out[b].v, load(x));
    store_bf16_fours(out[b].v + 16, load(x + 16));
    out[b].sum = sum(add(load_bf16(out[b].v), load_bf16(out[b].v + 16)));
  }
}

void rms_norm(const float* x, const float* weight, float eps, float* y, int n) {
  Vec squares = zero();
  each16(n, [&](int i, int some) {
    const Vec v = load_some(x + i, some);
    squares = fma(v, v, squares);
  });
  const float mean = sum(squares) / static_cast<float>(n);
  const Vec scale = set(1.0f / __builtin_sqrtf(mean + eps));
  each16(n, [&](int i, int some) {
    store_some(y + i, mul(mul(load_some(x + i, some), scale), load_some(weight + i, some)), some);
  });
}

float maximum_of(const float* x, int n) {
  Vec top = set(x[0]);
  each16(n, [&](int i, int some) { top = max(top, first_or(load_some(x + i, some), some, top)); });
  return maximum(top);
}

void add_rows(float* x, const float* y, int n) {
  each16(n, [&](int i, int some) { store_some(x + i, add(load_some(x + i, some), load_some(y + i, some)), some); });
}

void scale_row(float* x, float factor, int n) {
  const Vec f = set(factor);
  each16(n, [&](int i, int some) { store_some(x + i, mul(load_some(x + i, some), f), some); });
}

void add_scaled(float* x, const float* y, float factor, int n) {
  const Vec f = set(factor);
  each16(n, [&](int i, int some) { store_some(x + i, fma(load_some(y + i, some), f, load_some(x + i, some)), some); });
}

void softmax(float* x, int n) {
  const Vec top = set(maximum_of(x, n));
  Vec total = zero();
  each16(n, [&](int i, int some) {
    const Vec e = exp(sub(load_some(x + i, some), top));
    store_some(x + i, e, some);
    total = add(total, first_or(e, some, zero()));
  });
  const Vec divisor = set(sum(total));
  each16(n, [&](int i, int some) { store_some(x + i, div(load_some(x + i, some), divisor), some); });
}

void gate(GateKind kind, const float* gate, const float* up, float* out, int n) {
  const Vec one = set(1.0f);
  if (kind == GateKind::silu) {  // g / (1 + e^-g)
    each16(n, [&](int i, int some) {
      const Vec g = load_some(gate + i, some);
      const Vec activated = div(g, add(one, exp(sub(zero(), g))));
      store_some(out + i, mul(activated, load_some(up + i, some)), some);
    });
  } else {
    // gelu, tanh form: 0.5 g (1 + tanh u) with u = sqrt(2 / pi) (g + 0.044715 g^3), which is g / (1 + e^-2u).
    const Vec c1 = set(2 * 0.7978845608f), c3 = set(2 * 0.7978845608f * 0.044715f);
    each16(n, [&](int i, int some) {
      const Vec g = load_some(gate + i, some);
      const Vec two_u = mul(g, fma(mul(g, g), c3, c1));
      const Vec activated = div(g, add(one, exp(sub(zero(), two_u))));
      store_some(out + i, mul(activated, load_some(up + i, some)), some);
    });
  }
}

void rope(float* x, const float* cosines, const float* sines, int dims) {
  const int half = dims / 2;
  each16(half, [&](int i, int some) {
    const Vec a = load_some(x + i, some), b = load_some(x + half + i, some);
    const Vec c = load_some(cosines + i, some), s = load_some(sines + i, some);
    store_some(x + i, sub(mul(a, c), mul(b, s)), some);
    store_some(x + half + i, add(mul(b, c), mul(a, s)), some);
  });
}

}  // namespace unisono::kernels::KERNEL_ISA

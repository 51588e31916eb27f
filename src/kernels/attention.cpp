// Attention over paged keys and values. Scores: a lane is a position, its sum runs over the head's dims. Values: a lane is a
// channel, its sum runs over positions. The soft-max takes a split of 256 positions, aligned to the absolute position, in
// two passes; splits fold into a running state in order. So a query's bits depend on its own context only: not on which
// queries share its tile, nor on which thread took which split. Compiled once per instruction set.
//
// Positions a query can't see weigh exactly 0, and 0 * v + f is f: whole blocks of them may be read or left out alike.
// Positions beyond the item's last token are never read: what another sequence left there may be anything.
#include "kernels/exp.h"
#include "kernels/isa.h"

namespace unisono::kernels::KERNEL_ISA {

namespace {

constexpr float kNothing = -1e30f;
constexpr int lesser(int a, int b) { return a < b ? a : b; }
constexpr int greater(int a, int b) { return a > b ? a : b; }

struct Half {
  using Element = uint16_t;
  static UNISONO_INLINE Vec load(const uint16_t* p) { return load_half(p); }
};
struct Full {
  using Element = float;
  static UNISONO_INLINE Vec load(const float* p) { return KERNEL_ISA::load(p); }
};

// One item's working memory, on the stack of the thread that computes it.
struct Scratch {
  alignas(64) float q[kMaxQueries][kMaxHeadDim];  // rows side by side: in the batch they may all fall in one set of the cache
  alignas(64) float p[kMaxQueries][kSplit];       // scores, then exponentials
  float top[kMaxQueries], sum[kMaxQueries];
};

// Scores of MQ queries against NB blocks.
template <class T, int MQ, int NB>
UNISONO_INLINE void scores(const AttentionItem& item, const int32_t* blocks, Scratch& s, int query, int at) {
  Vec f[MQ][NB];
  UNISONO_UNROLL for (int r = 0; r < MQ; r++)
    UNISONO_UNROLL for (int j = 0; j < NB; j++) f[r][j] = zero();
  const typename T::Element* keys[NB];
  UNISONO_UNROLL for (int j = 0; j < NB; j++)
    keys[j] = reinterpret_cast<const typename T::Element*>(item.kv.base + item.kv.stride * static_cast<size_t>(blocks[j]));
  for (int d = 0; d < item.kv.head_dim; d++) {
    Vec k[NB];
    UNISONO_UNROLL for (int j = 0; j < NB; j++) k[j] = T::load(keys[j] + kPage * d);
    UNISONO_UNROLL for (int r = 0; r < MQ; r++) {
      const Vec x = set(s.q[query + r][d]);
      UNISONO_UNROLL for (int j = 0; j < NB; j++) f[r][j] = fma(k[j], x, f[r][j]);
    }
  }
  UNISONO_UNROLL for (int r = 0; r < MQ; r++)
    UNISONO_UNROLL for (int j = 0; j < NB; j++) store(s.p[query + r] + at + kPage * j, f[r][j]);
}

template <class T, int MQ, int NB>
void scores_of(int queries, const AttentionItem& item, const int32_t* blocks, Scratch& s, int query, int at) {
  if constexpr (MQ > 1) {
    if (queries < MQ) return scores_of<T, MQ - 1, NB>(queries, item, blocks, s, query, at);
  }
  scores<T, MQ, NB>(item, blocks, s, query, at);
}

// Adds positions [begin, end) of a split to NC x 16 channels of MQ queries' values, from channel 16 * c0.
template <class T, int MQ, int NC>
UNISONO_INLINE void values(const AttentionItem& item, const int32_t* blocks, const Scratch& s, int query, int begin, int end,
                           int c0, float* out, size_t stride) {
  const int keys = item.kv.head_dim * kPage, width = (item.kv.head_dim + 15) / 16 * 16;
  Vec f[MQ][NC];
  UNISONO_UNROLL for (int r = 0; r < MQ; r++)
    UNISONO_UNROLL for (int c = 0; c < NC; c++) f[r][c] = zero();
  for (int at = begin; at < end;) {
    const auto* v = reinterpret_cast<const typename T::Element*>(item.kv.base + item.kv.stride * static_cast<size_t>(blocks[at / kPage])) +
                    keys + width * (at % kPage) + 16 * c0;
    for (const int stop = lesser(end, at / kPage * kPage + kPage); at < stop; at++, v += width) {
      Vec x[NC];
      UNISONO_UNROLL for (int c = 0; c < NC; c++) x[c] = T::load(v + 16 * c);
      UNISONO_UNROLL for (int r = 0; r < MQ; r++) {
        const Vec p = set(s.p[query + r][at]);
        UNISONO_UNROLL for (int c = 0; c < NC; c++) f[r][c] = fma(x[c], p, f[r][c]);
      }
    }
  }
  UNISONO_UNROLL for (int r = 0; r < MQ; r++)
    UNISONO_UNROLL for (int c = 0; c < NC; c++) store(out + static_cast<size_t>(r) * stride + 16 * (c0 + c), f[r][c]);
}

template <class T, int MQ, int NC>
void values_of(int queries, const AttentionItem& item, const int32_t* blocks, const Scratch& s, int query, int begin, int end,
               int c0, float* out, size_t stride) {
  if constexpr (MQ > 1) {
    if (queries < MQ) return values_of<T, MQ - 1, NC>(queries, item, blocks, s, query, begin, end, c0, out, stride);
  }
  values<T, MQ, NC>(item, blocks, s, query, begin, end, c0, out, stride);
}

// Scores [low, high) of the split become exponentials; all others between the block borders [begin, end) become 0.
void soft_max(float* p, int begin, int end, int low, int high, float& top, float& total) {
  if (low >= high) {
    for (int i = begin; i < end; i += 16) store(p + i, zero());
    top = kNothing;
    total = 0;
    return;
  }
  const Vec nothing = set(kNothing);
  Vec best = nothing;
  // Lanes of the 16 at i that lie in [low, high), the others `fill`.
  auto seen = [&](Vec x, int i, Vec fill) {
    if (i + 16 > high) x = first_or(x, greater(0, lesser(16, high - i)), fill);
    if (i < low) x = first_or(fill, lesser(16, low - i), x);
    return x;
  };
  for (int i = begin; i < end; i += 16) best = max(best, seen(load(p + i), i, nothing));
  top = maximum(best);
  const Vec t = set(top);
  Vec sums = zero();
  for (int i = begin; i < end; i += 16) {
    const Vec e = seen(exp(sub(load(p + i), t)), i, zero());
    store(p + i, e);
    sums = add(sums, e);
  }
  total = sum(sums);
}

template <class T>
void split_of(const AttentionItem& item, int split, Scratch& s, float* states, size_t stride) {
  const int queries = item.tokens * item.group, first = split * kSplit;
  const int32_t* blocks = item.blocks + first / kPage;
  // What the item's tokens see of this split: [from, to), and the blocks that hold it.
  const int last_position = item.first_position + item.tokens - 1;
  const int to = lesser(kSplit, last_position + 1 - first);
  const int from = item.window > 0 ? greater(0, item.first_position - item.window + 1 - first) : 0;
  const int begin = from / kPage * kPage, end = (to + kPage - 1) / kPage * kPage;
  for (int at = begin; at < end;) {
    const bool whole = at + kPage * kTilePages <= end;
    for (int r = 0; r < queries; r += kTileQueries) {
      if (whole) {
        scores_of<T, kTileQueries, kTilePages>(lesser(kTileQueries, queries - r), item, blocks + at / kPage, s, r, at);
      } else {
        scores_of<T, kTileQueries, 1>(lesser(kTileQueries, queries - r), item, blocks + at / kPage, s, r, at);
      }
    }
    at += whole ? kPage * kTilePages : kPage;
  }
  for (int r = 0; r < queries; r++) {
    const int position = item.first_position + r / item.group - first;
    const int low = item.window > 0 ? greater(begin, position - item.window + 1) : begin;
    soft_max(s.p[r], begin, end, low, lesser(kSplit, position + 1), s.top[r], s.sum[r]);
  }
  const int channels = (item.kv.head_dim + 15) / 16;
  for (int c = 0; c < channels;) {
    const bool whole = c + kTileChannels <= channels;
    for (int r = 0; r < queries; r += kTileQueries) {
      float* out = states + static_cast<size_t>(r) * stride + 16;
      const int some = lesser(kTileQueries, queries - r);
      if (whole) {
        values_of<T, kTileQueries, kTileChannels>(some, item, blocks, s, r, begin, to, c, out, stride);
      } else {
        values_of<T, kTileQueries, 1>(some, item, blocks, s, r, begin, to, c, out, stride);
      }
    }
    c += whole ? kTileChannels : 1;
  }
  for (int r = 0; r < queries; r++) {
    states[static_cast<size_t>(r) * stride] = s.top[r];
    states[static_cast<size_t>(r) * stride + 1] = s.sum[r];
  }
}

}  // namespace

void store_kv(const KvView& kv, int block, int slot, const float* key, const float* value) {
  const int width = (kv.head_dim + 15) / 16 * 16;
  std::byte* at = kv.base + kv.stride * static_cast<size_t>(block);
  if (kv.f32) {
    float* k = reinterpret_cast<float*>(at);
    float* v = k + kv.head_dim * kPage + slot * width;
    for (int d = 0; d < kv.head_dim; d++) k[d * kPage + slot] = key[d];
    for (int d = 0; d < kv.head_dim; d++) v[d] = value[d];
    return;
  }
  auto* k = reinterpret_cast<uint16_t*>(at);
  uint16_t* v = k + kv.head_dim * kPage + slot * width;
  const Vec most = set(65504.0f), least = set(-65504.0f);
  for (int d = 0; d < kv.head_dim; d += 16) {
    const int some = lesser(16, kv.head_dim - d);
    alignas(32) uint16_t column[16];
    store_half(column, min(max(some == 16 ? load(key + d) : load_first(key + d, some), least), most));
    for (int i = 0; i < some; i++) k[(d + i) * kPage + slot] = column[i];
    store_half(v + d, min(max(some == 16 ? load(value + d) : load_first(value + d, some), least), most));
  }
}

void attention_fold(float* running, const float* split, int head_dim) {
  const float top = running[0] > split[0] ? running[0] : split[0];
  const Vec a = exp(set(running[0] - top)), b = exp(set(split[0] - top));
  alignas(64) float sums[16];
  store(sums, fma(set(split[1]), b, mul(set(running[1]), a)));
  running[0] = top;
  running[1] = sums[0];
  for (int d = 16; d < 16 + (head_dim + 15) / 16 * 16; d += 16)
    store(running + d, fma(load(split + d), b, mul(load(running + d), a)));
}

void attention_finish(const float* state, float* out, int head_dim) {
  const Vec total = set(state[1]);
  for (int d = 0; d < head_dim; d += 16) {
    const Vec o = div(load(state + 16 + d), total);
    if (head_dim - d >= 16) {
      store(out + d, o);
    } else {
      store_first(out + d, o, head_dim - d);
    }
  }
}

void attend(const AttentionItem& item, int begin, int end, bool fold, float* states, size_t state_stride) {
  Scratch s;
  const int queries = item.tokens * item.group, dims = item.kv.head_dim;
  for (int r = 0; r < queries; r++)
    __builtin_memcpy(s.q[r], item.q + (r / item.group) * item.q_stride + (r % item.group) * dims,
                     sizeof(float) * static_cast<size_t>(dims));
  const size_t floats = attention_state_floats(dims);
  alignas(64) float own[kMaxQueries][attention_state_floats(kMaxHeadDim)];
  for (int split = begin; split < end; split++) {
    float* at = fold ? own[0] : states + static_cast<size_t>(split - begin) * floats;
    const size_t stride = fold ? attention_state_floats(kMaxHeadDim) : state_stride;
    if (item.kv.f32) {
      split_of<Full>(item, split, s, at, stride);
    } else {
      split_of<Half>(item, split, s, at, stride);
    }
    if (fold)
      for (int r = 0; r < queries; r++) attention_fold(states + static_cast<size_t>(r) * state_stride, own[r], dims);
  }
}

}  // namespace unisono::kernels::KERNEL_ISA

// Attention over paged keys and values. Scores: a lane is a position, its sum runs over the head's dims. Values: a lane is a
// channel, its sum runs over positions. The soft-max takes a split of 256 positions, aligned to the absolute position, in
// two passes; splits fold into a running state in order. So a query's bits depend on its own context only: not on which
// queries share its tile, nor on which thread took which split. Compiled once per instruction set.
//
// Few queries (decode) take keys and values as they lie in memory and fetch ahead, as blocks are no stream; many (prefill, or
// sequences over blocks they share) widen them to f32 once for all.
//
// Positions a query can't see weigh exactly 0, and 0 * v + f is f: whole blocks of them may be read or left out alike.
// Positions beyond the item's last token are never read: what another sequence left there may be anything.
#include <type_traits>

#include "kernels/exp.h"
#include "kernels/isa.h"

namespace unisono::kernels::KERNEL_ISA {

namespace {

constexpr float kNothing = -1e30f;
constexpr int kScaled = 32;  // q8_0: dims or channels that share a scale
constexpr int lesser(int a, int b) { return a < b ? a : b; }
constexpr int greater(int a, int b) { return a > b ? a : b; }
constexpr int padded(int dims) { return (dims + 15) / 16 * 16; }
constexpr int scales_of(int dims) { return (dims + kScaled - 1) / kScaled; }

// 16 values of a type, widened.
struct F16 {
  static constexpr int bytes = 2;
  static constexpr bool scaled = false;
  static UNISONO_INLINE Vec load(const std::byte* p) { return load_half(reinterpret_cast<const uint16_t*>(p)); }
};
struct Bf16 {
  static constexpr int bytes = 2;
  static constexpr bool scaled = false;
  static UNISONO_INLINE Vec load(const std::byte* p) { return load_bf16(reinterpret_cast<const uint16_t*>(p)); }
};
struct F32 {
  static constexpr int bytes = 4;
  static constexpr bool scaled = false;
  static UNISONO_INLINE Vec load(const std::byte* p) { return KERNEL_ISA::load(reinterpret_cast<const float*>(p)); }
};
struct Q8 {
  static constexpr int bytes = 1;
  static constexpr bool scaled = true;
  static UNISONO_INLINE Vec load(const std::byte* p) { return to_floats(widen(reinterpret_cast<const int8_t*>(p))); }
};

// Where a block's keys and values lie: as ops.h lays them out, or widened.
struct Place {
  const std::byte* keys = nullptr;      // [dims][16]
  const float* key_scales = nullptr;    // [scales_of(dims)][16]
  const std::byte* values = nullptr;    // [16], value_stride bytes apart
  const float* value_scales = nullptr;  // [16][scales_of(dims)]
  int value_stride = 0;
  // As much again, to be fetched while these are used.
  const std::byte *after_keys = nullptr, *after_values = nullptr;
};

template <class T>
Place place_of(const KvView& kv, int32_t block) {
  const std::byte* at = kv.base + kv.stride * static_cast<size_t>(block);
  Place p;
  p.keys = at;
  p.value_stride = padded(kv.head_dim) * T::bytes;
  p.values = at + kv.head_dim * kPage * T::bytes;
  if constexpr (T::scaled) {
    p.key_scales = reinterpret_cast<const float*>(p.values + kPage * p.value_stride);
    p.value_scales = p.key_scales + scales_of(kv.head_dim) * kPage;
  }
  return p;
}

constexpr int kManyPages = kTilePages, kManyChannels = kTileChannels;

// One item's working memory, on the stack of the thread that computes it. Rows are padded, or many of them would fall into
// one set of the cache.
struct Scratch {
  alignas(64) float q[kMaxQueries * kMaxHeadDim];  // [queries][dims]
  alignas(64) float p[kMaxQueries][kSplit + 16];   // scores, then exponentials
  float top[kMaxQueries], sum[kMaxQueries];
  float* state[kMaxQueries];  // where the split's states go
  int position[kMaxQueries];
  Place places[kSplit / kPage];
  // Widened: the keys of a tile's pages, and a tile's channels of a split's values.
  alignas(64) float keys[kManyPages * kMaxHeadDim * kPage];
  alignas(64) float values[kSplit * kManyChannels * 16];
};

// Scores of MQ queries against NB blocks, into columns from `column`. Fetch: what comes after the keys, too.
template <class T, bool Fetch, int MQ, int NB>
UNISONO_INLINE void scores(const Place* places, int dims, Scratch& s, int query, int column) {
  Vec f[MQ][NB];
  UNISONO_UNROLL for (int r = 0; r < MQ; r++)
    UNISONO_UNROLL for (int j = 0; j < NB; j++) f[r][j] = zero();
  const float* q = s.q + query * dims;
  for (int from = 0; from < dims; from += kScaled) {
    [[maybe_unused]] Vec scale[NB];
    if constexpr (T::scaled) {
      UNISONO_UNROLL for (int j = 0; j < NB; j++) scale[j] = load(places[j].key_scales + from / kScaled * kPage);
    }
    for (int d = from, to = lesser(dims, from + kScaled); d < to; d++) {
      Vec k[NB];
      if (Fetch && d * kPage * T::bytes % 64 == 0)
        UNISONO_UNROLL for (int j = 0; j < NB; j++) prefetch(places[j].after_keys + d * kPage * T::bytes);
      UNISONO_UNROLL for (int j = 0; j < NB; j++) {
        k[j] = T::load(places[j].keys + d * kPage * T::bytes);
        if constexpr (T::scaled) k[j] = mul(k[j], scale[j]);
      }
      UNISONO_UNROLL for (int r = 0; r < MQ; r++) {
        const Vec x = set(q[r * dims + d]);
        UNISONO_UNROLL for (int j = 0; j < NB; j++) f[r][j] = fma(k[j], x, f[r][j]);
      }
    }
  }
  UNISONO_UNROLL for (int r = 0; r < MQ; r++)
    UNISONO_UNROLL for (int j = 0; j < NB; j++) store(s.p[query + r] + column + kPage * j, f[r][j]);
}
template <class T, bool Fetch, int MQ, int NB>
void scores_of(int queries, const Place* places, int dims, Scratch& s, int query, int column) {
  if constexpr (MQ > 1) {
    if (queries < MQ) return scores_of<T, Fetch, MQ - 1, NB>(queries, places, dims, s, query, column);
  }
  scores<T, Fetch, MQ, NB>(places, dims, s, query, column);
}

// Adds positions [begin, end) of a split to NC x 16 channels of MQ queries' values: channels from `from` of the places, to
// `to` of the states. Fetch: what comes after the values, too.
template <class T, bool Fetch, int MQ, int NC>
UNISONO_INLINE void values(const Place* places, Scratch& s, int query, int begin, int end, int from, int to) {
  Vec f[MQ][NC];
  UNISONO_UNROLL for (int r = 0; r < MQ; r++)
    UNISONO_UNROLL for (int c = 0; c < NC; c++) f[r][c] = zero();
  for (int at = begin; at < end;) {
    const Place& place = places[at / kPage];
    const int first = at % kPage;
    const std::byte* v = place.values + place.value_stride * first + from * T::bytes;
    [[maybe_unused]] const std::byte* after = Fetch ? place.after_values + (v - place.values) : nullptr;
    [[maybe_unused]] const int scales = scales_of(place.value_stride);
    [[maybe_unused]] const float* d = T::scaled ? place.value_scales + first * scales + from / kScaled : nullptr;
    for (const int stop = lesser(end, at - first + kPage); at < stop; at++, v += place.value_stride) {
      if constexpr (Fetch) {
        for (int i = 0; i < NC * 16 * T::bytes; i += 64) prefetch(after + i);
        after += place.value_stride;
      }
      Vec x[NC];
      UNISONO_UNROLL for (int c = 0; c < NC; c++) {
        x[c] = T::load(v + 16 * c * T::bytes);
        if constexpr (T::scaled) x[c] = mul(x[c], set(d[(from % kScaled + 16 * c) / kScaled]));
      }
      if constexpr (T::scaled) d += scales;
      UNISONO_UNROLL for (int r = 0; r < MQ; r++) {
        const Vec p = set(s.p[query + r][at]);
        UNISONO_UNROLL for (int c = 0; c < NC; c++) f[r][c] = fma(x[c], p, f[r][c]);
      }
    }
  }
  UNISONO_UNROLL for (int r = 0; r < MQ; r++)
    UNISONO_UNROLL for (int c = 0; c < NC; c++) store(s.state[query + r] + 16 + to + 16 * c, f[r][c]);
}
template <class T, bool Fetch, int MQ, int NC>
void values_of(int queries, const Place* places, Scratch& s, int query, int begin, int end, int from, int to) {
  if constexpr (MQ > 1) {
    if (queries < MQ) return values_of<T, Fetch, MQ - 1, NC>(queries, places, s, query, begin, end, from, to);
  }
  values<T, Fetch, MQ, NC>(places, s, query, begin, end, from, to);
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

// What an item sees of a split: positions [begin, to) from a block's border, in blocks up to `end`.
struct Reach {
  int begin = 0, to = 0, end = 0;
};

// Blocks of the split that are fetched ahead of the one in use, and of the next split.
constexpr int kAhead = 2;

// Scores and values of few queries, from memory as it is.
template <class T>
void few_scores(int dims, int queries, const Reach& reach, Scratch& s) {
  const int first = reach.begin / kPage, last = reach.end / kPage;
  for (int b = first; b < last;) {
    const bool whole = b + kFewPages <= last;
    const int pages = whole ? kFewPages : 1;
    for (int j = 0; j < pages; j++) {
      const int then = b + pages + j;
      s.places[b + j].after_keys = then < last ? s.places[then].keys : s.places[lesser(first + j, last - 1)].values;
    }
    for (int r = 0; r < queries; r += kFewQueries) {
      const int some = lesser(kFewQueries, queries - r);
      if (whole) {
        scores_of<T, true, kFewQueries, kFewPages>(some, s.places + b, dims, s, r, b * kPage);
      } else {
        scores_of<T, true, kFewQueries, 1>(some, s.places + b, dims, s, r, b * kPage);
      }
    }
    b += pages;
  }
}
// next: keys of the next split's first blocks, or null.
template <class T>
void few_values(int dims, int queries, const Reach& reach, Scratch& s, const std::byte* const (&next)[kAhead]) {
  for (int b = reach.begin / kPage, last = reach.end / kPage; b < last; b++) {
    const std::byte* after = b + kAhead < last ? s.places[b + kAhead].values : next[b + kAhead - last];
    s.places[b].after_values = after != nullptr ? after : s.places[b].values;
  }
  for (int c = 0; c < padded(dims);) {
    const bool whole = c + 16 * kFewChannels <= padded(dims);
    for (int r = 0; r < queries; r += kFewQueries) {
      const int some = lesser(kFewQueries, queries - r);
      if (whole) {
        values_of<T, true, kFewQueries, kFewChannels>(some, s.places, s, r, reach.begin, reach.to, c, c);
      } else {
        values_of<T, true, kFewQueries, 1>(some, s.places, s, r, reach.begin, reach.to, c, c);
      }
    }
    c += whole ? 16 * kFewChannels : 16;
  }
}

// The same for many queries: a tile's keys, and a tile's channels of values, are widened first.
template <class T>
void widen_keys(const Place& place, int dims, float* out) {
  for (int d = 0; d < dims; d++) {
    Vec k = T::load(place.keys + d * kPage * T::bytes);
    if constexpr (T::scaled) k = mul(k, load(place.key_scales + d / kScaled * kPage));
    store(out + d * kPage, k);
  }
}
template <class T>
void many_scores(int dims, int queries, const Reach& reach, Scratch& s) {
  for (int b = reach.begin / kPage, last = reach.end / kPage; b < last;) {
    const bool whole = b + kManyPages <= last;
    const int pages = whole ? kManyPages : 1;
    Place wide[kManyPages];
    for (int j = 0; j < pages; j++) {
      if constexpr (T::bytes == 4) {
        wide[j] = s.places[b + j];
      } else {
        float* keys = s.keys + j * dims * kPage;
        widen_keys<T>(s.places[b + j], dims, keys);
        wide[j].keys = reinterpret_cast<const std::byte*>(keys);
      }
    }
    for (int r = 0; r < queries; r += kTileQueries) {
      const int some = lesser(kTileQueries, queries - r);
      if (whole) {
        scores_of<F32, false, kTileQueries, kManyPages>(some, wide, dims, s, r, b * kPage);
      } else {
        scores_of<F32, false, kTileQueries, 1>(some, wide, dims, s, r, b * kPage);
      }
    }
    b += pages;
  }
}
template <class T, int NC>
void many_values_of(int queries, const Reach& reach, Scratch& s, int c) {
  Place wide[kSplit / kPage];
  int from = c;
  for (int b = reach.begin / kPage; b < reach.end / kPage; b++) {
    const Place& place = s.places[b];
    if constexpr (T::bytes == 4) {
      wide[b] = place;
    } else {
      from = 0;
      float* out = s.values + b * kPage * NC * 16;
      wide[b].values = reinterpret_cast<const std::byte*>(out);
      wide[b].value_stride = NC * 16 * 4;
      for (int i = 0, some = lesser(kPage, reach.to - b * kPage); i < some; i++)
        for (int j = 0; j < NC; j++) {
          Vec v = T::load(place.values + i * place.value_stride + (c + 16 * j) * T::bytes);
          if constexpr (T::scaled) v = mul(v, set(place.value_scales[i * scales_of(place.value_stride) + (c + 16 * j) / kScaled]));
          store(out + (i * NC + j) * 16, v);
        }
    }
  }
  for (int r = 0; r < queries; r += kTileQueries)
    values_of<F32, false, kTileQueries, NC>(lesser(kTileQueries, queries - r), wide, s, r, reach.begin, reach.to, from, c);
}
template <class T>
void many_values(int dims, int queries, const Reach& reach, Scratch& s) {
  int c = 0;
  for (; c + 16 * kManyChannels <= padded(dims); c += 16 * kManyChannels) many_values_of<T, kManyChannels>(queries, reach, s, c);
  for (; c < padded(dims); c += 16) many_values_of<T, 1>(queries, reach, s, c);
}

// One split for all queries of the item, into s.state.
template <class T>
void split_of(const AttentionItem& item, int split, bool last, Scratch& s) {
  const int queries = item.n_tokens * item.group, first = split * kSplit, dims = item.kv.head_dim;
  int lowest = kSplit, highest = 0;  // what the queries see of this split, as the first and behind the last position
  for (int r = 0; r < queries; r += item.group) {
    lowest = lesser(lowest, item.window > 0 ? greater(0, s.position[r] - item.window + 1 - first) : 0);
    highest = greater(highest, lesser(kSplit, s.position[r] + 1 - first));
  }
  const Reach reach{lowest / kPage * kPage, highest, (highest + kPage - 1) / kPage * kPage};
  const int32_t* blocks = item.blocks + first / kPage;
  for (int b = reach.begin / kPage; b < reach.end / kPage; b++) s.places[b] = place_of<T>(item.kv, blocks[b]);
  const bool few = queries <= kFewQueries;
  if (few) {
    few_scores<T>(dims, queries, reach, s);
  } else {
    many_scores<T>(dims, queries, reach, s);
  }
  for (int r = 0; r < queries; r++) {
    const int position = s.position[r] - first;
    const int low = item.window > 0 ? greater(reach.begin, position - item.window + 1) : reach.begin;
    soft_max(s.p[r], reach.begin, reach.end, low, lesser(kSplit, position + 1), s.top[r], s.sum[r]);
  }
  if (few) {
    const std::byte* next[kAhead] = {};
    for (int i = 0; i < kAhead && !last && first + kSplit + i * kPage <= s.position[0]; i++)
      next[i] = place_of<T>(item.kv, blocks[kSplit / kPage + i]).keys;
    few_values<T>(dims, queries, reach, s, next);
  } else {
    many_values<T>(dims, queries, reach, s);
  }
  for (int r = 0; r < queries; r++) {
    s.state[r][0] = s.top[r];
    s.state[r][1] = s.sum[r];
  }
}

template <class T>
UNISONO_INLINE void store_rows(std::byte* at, int dims, int slot, const float* key, const float* value, Vec least, Vec most) {
  auto* k = reinterpret_cast<uint16_t*>(at);
  uint16_t* v = k + dims * kPage + slot * padded(dims);
  for (int d = 0; d < dims; d += 16) {
    const int some = lesser(16, dims - d);
    auto rounded = [&](const float* x, uint16_t* out) {
      const Vec in = min(max(some == 16 ? load(x + d) : load_first(x + d, some), least), most);
      if constexpr (std::is_same_v<T, F16>) {
        store_half(out, in);
      } else {
        store_bf16(out, in);
      }
    };
    alignas(32) uint16_t column[16];
    rounded(key, column);
    for (int i = 0; i < some; i++) k[(d + i) * kPage + slot] = column[i];
    rounded(value, v + d);
  }
}

// 32 of a head's values from x[from], the last ones zero-filled.
QuantBlock quantised(const float* x, int from, int dims) {
  QuantBlock block;
  alignas(64) float in[kScaled] = {};
  __builtin_memcpy(in, x + from, sizeof(float) * static_cast<size_t>(lesser(kScaled, dims - from)));
  quantise(in, kScaled, &block);
  return block;
}
void store_q8(std::byte* at, int dims, int slot, const float* key, const float* value) {
  auto* k = reinterpret_cast<int8_t*>(at);
  int8_t* v = k + dims * kPage;
  auto* key_scales = reinterpret_cast<float*>(v + padded(dims) * kPage);
  float* value_scales = key_scales + scales_of(dims) * kPage;
  for (int b = 0; b < scales_of(dims); b++) {
    const int from = b * kScaled;
    const QuantBlock key_block = quantised(key, from, dims), value_block = quantised(value, from, dims);
    for (int i = 0; i < lesser(kScaled, dims - from); i++) k[(from + i) * kPage + slot] = key_block.q[i];
    __builtin_memcpy(v + slot * padded(dims) + from, value_block.q, static_cast<size_t>(lesser(kScaled, padded(dims) - from)));
    key_scales[b * kPage + slot] = key_block.scale;
    value_scales[slot * scales_of(dims) + b] = value_block.scale;
  }
}

}  // namespace

void store_kv(const KvView& kv, int block, int slot, const float* key, const float* value) {
  std::byte* at = kv.base + kv.stride * static_cast<size_t>(block);
  switch (kv.type) {
    case KvType::f16: return store_rows<F16>(at, kv.head_dim, slot, key, value, set(-65504.0f), set(65504.0f));
    case KvType::bf16: return store_rows<Bf16>(at, kv.head_dim, slot, key, value, set(-0x1.fep127f), set(0x1.fep127f));
    case KvType::q8_0: return store_q8(at, kv.head_dim, slot, key, value);
    case KvType::f32: break;
  }
  auto* k = reinterpret_cast<float*>(at);
  float* v = k + kv.head_dim * kPage + slot * padded(kv.head_dim);
  for (int d = 0; d < kv.head_dim; d++) k[d * kPage + slot] = key[d];
  for (int d = 0; d < kv.head_dim; d++) v[d] = value[d];
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

void attend(const AttentionItem& item, int begin, int end, bool fold) {
  Scratch s;
  const int queries = item.n_tokens * item.group, dims = item.kv.head_dim;
  const size_t floats = attention_state_floats(dims);
  alignas(64) float own[kMaxQueries * (attention_state_floats(kMaxHeadDim) + 16)];
  for (int r = 0; r < queries; r++) {
    const AttentionToken& token = item.tokens[r / item.group];
    __builtin_memcpy(s.q + r * dims, token.q + (r % item.group) * dims, sizeof(float) * static_cast<size_t>(dims));
    s.position[r] = token.position;
  }
  for (int split = begin; split < end; split++) {
    for (int r = 0; r < queries; r++)
      s.state[r] = fold ? own + static_cast<size_t>(r) * (floats + 16)
                        : item.tokens[r / item.group].states + static_cast<size_t>(r % item.group) * item.head_stride +
                              static_cast<size_t>(split - begin) * floats;
    const bool last = split + 1 == end;
    switch (item.kv.type) {
      case KvType::f16: split_of<F16>(item, split, last, s); break;
      case KvType::bf16: split_of<Bf16>(item, split, last, s); break;
      case KvType::f32: split_of<F32>(item, split, last, s); break;
      case KvType::q8_0: split_of<Q8>(item, split, last, s); break;
    }
    if (fold)
      for (int r = 0; r < queries; r++)
        attention_fold(item.tokens[r / item.group].states + static_cast<size_t>(r % item.group) * item.head_stride, s.state[r], dims);
  }
}

}  // namespace unisono::kernels::KERNEL_ISA

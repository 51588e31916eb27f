// Attention over paged keys and values. Scores: a lane is a position, its sum runs over the head's dims. Values: a lane is
// a channel, its sum runs over positions. The soft-max takes a split of 256 positions, aligned to the absolute position, in
// two passes; splits fold into a running state in order. So a query's bits depend on its own context only: not on which
// queries share its tile, nor on which thread took which split. Compiled once per instruction set.
//
// Positions a query can't see weigh exactly 0, and 0 * v + f is f: whole blocks of them may be read or left out alike.
// Positions beyond the item's last token are never read: what another sequence left there may be anything.
#include "kernels/attention_bf16.h"
#include "kernels/attention_f32.h"
#include "kernels/exp.h"

namespace unisono::kernels::KERNEL_ISA {

namespace {

// 16 scores at i, of those in [low, high); elsewhere `fill`.
UNISONO_INLINE Vec seen(Vec x, int i, int low, int high, Vec fill) {
  if (i + 16 > high) x = first_or(x, greater(0, lesser(16, high - i)), fill);
  if (i < low) x = first_or(fill, lesser(16, low - i), x);
  return x;
}
// Query r's scores [low, high) of the split become exponentials; all others between the block borders [begin, end) become
// 0.
template <class T>
void soft_max(T, Scratch& s, int r, int begin, int end, int low, int high) {
  float* p = s.p[r];
  const Vec top = set(s.top[r]);
  Vec sums = zero();
  for (int i = begin; i < end; i += 16) {
    const Vec e = seen(exp(sub(load(p + i), top)), i, low, high, zero());
    store(p + i, e);
    sums = add(sums, e);
  }
  s.sum[r] = sum(sums);
}
// Rounded ones are what is summed, so that weights still add up to 1: in pairs, at the same places for whatever `begin`.
void soft_max(Bf16, Scratch& s, int r, int begin, int end, int low, int high) {
  constexpr uint32_t kTwoOnes = 0x3f803f80;
  const float* p = s.p[r];
  uint16_t* rounded = s.rounded_p[r];
  const Vec top = set(s.top[r]);
  const int first = begin / 32 * 32;
  if (first < begin) store_bf16(rounded + first, zero());
  for (int i = begin; i < end; i += 16)
    store_bf16(rounded + i, seen(exp_for_bf16(sub(load(p + i), top)), i, low, high, zero()));
  if (end % 32 != 0) store_bf16(rounded + end, zero());
  Vec sums = zero();
  for (int i = first; i < end; i += 32) sums = dot(sums, load_pairs(rounded + i), kTwoOnes);
  s.sum[r] = sum(sums);
}
template <class T>
void weigh(Scratch& s, int r, int begin, int end, int low, int high) {
  const Vec nothing = set(kNothing);
  Vec best = nothing;
  for (int i = begin; i < end; i += 16) best = max(best, seen(load(s.p[r] + i), i, low, high, nothing));
  s.top[r] = maximum(best);
  soft_max(T{}, s, r, begin, end, low, high);
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
  split_scores(T{}, dims, queries, reach, s);
  for (int r = 0; r < queries; r++) {
    const int position = s.position[r] - first;
    const int low = item.window > 0 ? greater(reach.begin, position - item.window + 1) : reach.begin;
    weigh<T>(s, r, reach.begin, reach.end, low, lesser(kSplit, position + 1));
  }
  const std::byte* next[kBlocksAhead] = {};
  for (int i = 0; i < kFetchedBlocks; i++) {
    if (last) {
      next[i] = item.then[i];
    } else if (first + kSplit + i * kPage <= s.position[0]) {
      next[i] = place_of<T>(item.kv, blocks[kSplit / kPage + i]).keys;
    }
  }
  split_values(T{}, dims, queries, reach, s, next);
}

// 16 of a head's values from x[from], zero-filled, at most `most` in size.
UNISONO_INLINE Vec bounded(const float* x, int from, int dims, float most) {
  const int some = lesser(16, dims - from);
  const Vec in = some == 16 ? load(x + from) : load_first(x + from, some);
  return min(max(in, set(-most)), set(most));
}
void store_f16(std::byte* at, int dims, int slot, const float* key, const float* value) {
  constexpr float kMost = 65504.0f;
  auto* k = reinterpret_cast<uint16_t*>(at);
  uint16_t* v = k + dims * kPage + slot * padded(dims);
  for (int d = 0; d < dims; d += 16) {
    alignas(32) uint16_t column[16];
    store_half(column, bounded(key, d, dims, kMost));
    for (int i = 0; i < lesser(16, dims - d); i++) k[(d + i) * kPage + slot] = column[i];
    store_half(v + d, bounded(value, d, dims, kMost));
  }
}
// Another thread may be storing a slot's neighbour: nothing else may be written, not even with what it was.
void store_pairs_of(std::byte* at, int dims, int slot, const float* key, const float* value) {
  constexpr float kMost = 0x1.fep127f;
  auto* k = reinterpret_cast<uint16_t*>(at);
  uint16_t* v = k + pairs_of(dims) * 2 * kPage + slot / 2 * 2 * padded(dims) + slot % 2;
  for (int d = 0; d < dims; d += 16) {
    alignas(32) uint16_t column[16];
    store_bf16(column, bounded(key, d, dims, kMost));
    for (int i = 0; i < lesser(16, dims - d); i += 2) __builtin_memcpy(k + (d + i) * kPage + 2 * slot, column + i, 4);
    store_bf16(column, bounded(value, d, dims, kMost));
    for (int i = 0; i < 16; i++) v[2 * (d + i)] = column[i];
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
    __builtin_memcpy(v + slot * padded(dims) + from, value_block.q,
                     static_cast<size_t>(lesser(kScaled, padded(dims) - from)));
    key_scales[b * kPage + slot] = key_block.scale;
    value_scales[slot * scales_of(dims) + b] = value_block.scale;
  }
}

}  // namespace

void store_kv(const KvView& kv, int block, int slot, const float* key, const float* value) {
  std::byte* at = kv.base + kv.stride * static_cast<size_t>(block);
  switch (kv.type) {
    case KvType::f16: return store_f16(at, kv.head_dim, slot, key, value);
    case KvType::bf16: return store_pairs_of(at, kv.head_dim, slot, key, value);
    case KvType::q8_0: return store_q8(at, kv.head_dim, slot, key, value);
    case KvType::f32: break;
  }
  auto* k = reinterpret_cast<float*>(at);
  float* v = k + kv.head_dim * kPage + slot * padded(kv.head_dim);
  for (int d = 0; d < kv.head_dim; d++) k[d * kPage + slot] = key[d];
  for (int d = 0; d < kv.head_dim; d++) v[d] = value[d];
}

namespace {

// running * a + split * b, where the split's sum is given.
UNISONO_INLINE void fold_by(float* running, const float* split, int head_dim, float top, float sum, Vec a, Vec b) {
  alignas(64) float sums[16];
  store(sums, fma(set(sum), b, mul(set(running[1]), a)));
  running[0] = top;
  running[1] = sums[0];
  for (int d = 16; d < 16 + padded(head_dim); d += 16)
    store(running + d, fma(load(split + d), b, mul(load(running + d), a)));
}

// attention_fold() for all queries of an item: their factors 16 at a time.
void fold_all(const AttentionItem& item, Scratch& s) {
  const int queries = item.n_tokens * item.group;
  alignas(64) float before[kMaxQueries], a[kMaxQueries], b[kMaxQueries];
  float* running[kMaxQueries];
  for (int r = 0; r < queries; r++) {
    running[r] = item.tokens[r / item.group].states + static_cast<size_t>(r % item.group) * item.head_stride;
    before[r] = running[r][0];
  }
  for (int r = queries; r < (queries + 15) / 16 * 16; r++) before[r] = s.top[r] = kNothing;
  for (int r = 0; r < queries; r += 16) {
    const Vec was = load(before + r), own = load(s.top + r), top = max(was, own);
    store(a + r, exp(sub(was, top)));
    store(b + r, exp(sub(own, top)));
    store(s.top + r, top);
  }
  for (int r = 0; r < queries; r++)
    fold_by(running[r], s.state[r], item.kv.head_dim, s.top[r], s.sum[r], set(a[r]), set(b[r]));
}

}  // namespace

void attention_fold(float* running, const float* split, int head_dim) {
  const float top = running[0] > split[0] ? running[0] : split[0];
  fold_by(running, split, head_dim, top, split[1], exp(set(running[0] - top)), exp(set(split[0] - top)));
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
  alignas(64) float own[kMaxQueries * (attention_state_floats(kMaxHeadDim) + 16)];  // a split's states, to be folded
  for (int r = 0; r < queries; r++) {
    const AttentionToken& token = item.tokens[r / item.group];
    const float* q = token.q + (r % item.group) * dims;
    if (item.kv.type == KvType::bf16) {
      for (int d = 0; d < dims; d += 16)
        store_bf16(s.rounded_q + r * padded(dims) + d, dims - d >= 16 ? load(q + d) : load_first(q + d, dims - d));
    } else {
      __builtin_memcpy(s.q + r * dims, q, sizeof(float) * static_cast<size_t>(dims));
    }
    s.position[r] = token.position;
  }
  for (int split = begin; split < end; split++) {
    const bool folds = fold && split > begin;
    for (int r = 0; r < queries; r++)
      s.state[r] = folds ? own + static_cast<size_t>(r) * (floats + 16)
                         : item.tokens[r / item.group].states + static_cast<size_t>(r % item.group) * item.head_stride +
                               static_cast<size_t>(fold ? 0 : split - begin) * floats;
    const bool last = split + 1 == end;
    switch (item.kv.type) {
      case KvType::f16: split_of<F16>(item, split, last, s); break;
      case KvType::bf16: split_of<Bf16>(item, split, last, s); break;
      case KvType::f32: split_of<F32>(item, split, last, s); break;
      case KvType::q8_0: split_of<Q8>(item, split, last, s); break;
    }
    if (folds) {
      fold_all(item, s);
    } else {
      for (int r = 0; r < queries; r++) {
        s.state[r][0] = s.top[r];
        s.state[r][1] = s.sum[r];
      }
    }
  }
}

}  // namespace unisono::kernels::KERNEL_ISA

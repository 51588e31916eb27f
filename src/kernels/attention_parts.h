// What the pieces of attention share: where keys and values lie, an item's working memory, and what of a split it sees.
#pragma once

#include <type_traits>

#include "kernels/isa.h"
#include "kernels/pieces.h"
#include "kernels/tile.h"

namespace unisono::kernels::KERNEL_ISA {

namespace {

constexpr float kNothing = -1e30f;
constexpr int kScaled = 32;  // q8_0: dims or channels that share a scale
constexpr int padded(int dims) { return (dims + 15) / 16 * 16; }
constexpr int pairs_of(int dims) { return (dims + 1) / 2; }
constexpr int scales_of(int dims) { return (dims + kScaled - 1) / kScaled; }

// 16 values of a type, widened.
struct F16 {
  static constexpr int bytes = 2;
  static constexpr bool scaled = false;
  static UNISONO_INLINE Vec load(const std::byte* p) { return load_half(reinterpret_cast<const uint16_t*>(p)); }
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
// Never widened: multiplied in pairs.
struct Bf16 {};

// Where a block's keys and values lie: as ops.h lays them out, or widened.
struct Place {
  const std::byte* keys = nullptr;      // [dims][16]; bf16: [pairs of dims][16]
  const float* key_scales = nullptr;    // [scales_of(dims)][16]
  const std::byte* values = nullptr;    // [16], value_stride bytes apart; bf16: [8 pairs]
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
  if constexpr (std::is_same_v<T, Bf16>) {
    p.values = at + pairs_of(kv.head_dim) * kPage * 4;
    p.value_stride = padded(kv.head_dim) * 4;
  } else {
    p.values = at + kv.head_dim * kPage * T::bytes;
    p.value_stride = padded(kv.head_dim) * T::bytes;
    if constexpr (T::scaled) {
      p.key_scales = reinterpret_cast<const float*>(p.values + kPage * p.value_stride);
      p.value_scales = p.key_scales + scales_of(kv.head_dim) * kPage;
    }
  }
  return p;
}

constexpr int kManyPages = kTilePages, kManyChannels = kTileChannels;

// One item's working memory, on the stack of the thread that computes it. Rows are padded, or many of them would fall into
// one set of the cache.
struct Scratch {
  alignas(64) float q[kMaxQueries * kMaxHeadDim];  // [queries][dims]
  alignas(64) float p[kMaxQueries][kSplit + 16];   // scores, then exponentials
  alignas(64) float top[kMaxQueries];
  float sum[kMaxQueries];
  float* state[kMaxQueries];  // where the split's states go
  int position[kMaxQueries];
  Place places[kSplit / kPage];
  // Widened: the keys of a tile's pages, and a tile's channels of a split's values.
  alignas(64) float keys[kManyPages * kMaxHeadDim * kPage];
  alignas(64) float values[kSplit * kManyChannels * 16];
  // Rounded for products of bf16: [queries][padded(dims)], and exponentials.
  alignas(64) uint16_t rounded_q[kMaxQueries * kMaxHeadDim];
  alignas(64) uint16_t rounded_p[kMaxQueries][kSplit + 32];
};

// What an item sees of a split: positions [begin, to) from a block's border, in blocks up to `end`.
struct Reach {
  int begin = 0, to = 0, end = 0;
};

// Of a split's blocks, so many have one to fetch in the split; the others, the last kFetchedBlocks, fetch what comes behind it.
UNISONO_INLINE int fetching_within(const Reach& reach) { return greater(0, (reach.end - reach.begin) / kPage - kFetchedBlocks); }

// While keys are scored: those of blocks after them, behind the last the first values.
UNISONO_INLINE void fetch_after_keys(const Reach& reach, Scratch& s) {
  const int within = fetching_within(reach);
  Place* const places = s.places + reach.begin / kPage;
  for (int b = 0, n = (reach.end - reach.begin) / kPage; b < n; b++)
    places[b].after_keys = b < within ? places[b + kFetchedBlocks].keys : places[b - within].values;
}
// While values are used: those of blocks after them, behind the last `next`, keys of what is attended to next, or null.
UNISONO_INLINE void fetch_after_values(const Reach& reach, Scratch& s, const std::byte* const (&next)[kBlocksAhead]) {
  const int within = fetching_within(reach);
  Place* const places = s.places + reach.begin / kPage;
  for (int b = 0, n = (reach.end - reach.begin) / kPage; b < n; b++) {
    const std::byte* after = b < within ? places[b + kFetchedBlocks].values : next[b - within];
    places[b].after_values = after != nullptr ? after : places[b].values;
  }
}

}  // namespace

}  // namespace unisono::kernels::KERNEL_ISA

// Scores and weighted values of one split in f32. Few queries (decode) take keys and values as they lie in memory and fetch
// ahead, as blocks are no stream; many (prefill, or sequences over blocks they share) widen them to f32 once for all.
#pragma once

#include "kernels/attention_parts.h"

namespace unisono::kernels::KERNEL_ISA {

namespace {

// Scores of MQ queries against NB blocks, into columns from `column`. Fetch: what comes after the keys, too.
template <class T, bool Fetch, int MQ, int NB>
UNISONO_INLINE void scores(const Place* places, int dims, Scratch& s, int query, int column) {
  Vec f[MQ][NB];
  clear(f);
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
  UNISONO_UNROLL for (int r = 0; r < MQ; r++) UNISONO_UNROLL for (int j = 0; j < NB; j++)
      store(s.p[query + r] + column + kPage * j, f[r][j]);
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
  clear(f);
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
  UNISONO_UNROLL for (int r = 0; r < MQ; r++) UNISONO_UNROLL for (int c = 0; c < NC; c++)
      store(s.state[query + r] + 16 + to + 16 * c, f[r][c]);
}
template <class T, bool Fetch, int MQ, int NC>
void values_of(int queries, const Place* places, Scratch& s, int query, int begin, int end, int from, int to) {
  if constexpr (MQ > 1) {
    if (queries < MQ) return values_of<T, Fetch, MQ - 1, NC>(queries, places, s, query, begin, end, from, to);
  }
  values<T, Fetch, MQ, NC>(places, s, query, begin, end, from, to);
}

// Scores and values of few queries, from memory as it is.
template <class T>
void few_scores(int dims, int queries, const Reach& reach, Scratch& s) {
  fetch_after_keys(reach, s);
  for (int b = reach.begin / kPage, last = reach.end / kPage; b < last;) {
    const bool whole = b + kFewPages <= last;
    const int pages = whole ? kFewPages : 1;
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
template <class T>
void few_values(int dims, int queries, const Reach& reach, Scratch& s, const std::byte* const (&next)[kBlocksAhead]) {
  fetch_after_values(reach, s, next);
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
          if constexpr (T::scaled)
            v = mul(v, set(place.value_scales[i * scales_of(place.value_stride) + (c + 16 * j) / kScaled]));
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
  for (; c + 16 * kManyChannels <= padded(dims); c += 16 * kManyChannels)
    many_values_of<T, kManyChannels>(queries, reach, s, c);
  for (; c < padded(dims); c += 16) many_values_of<T, 1>(queries, reach, s, c);
}

template <class T>
void split_scores(T, int dims, int queries, const Reach& reach, Scratch& s) {
  if (queries <= kFewQueries) {
    few_scores<T>(dims, queries, reach, s);
  } else {
    many_scores<T>(dims, queries, reach, s);
  }
}
template <class T>
void split_values(T, int dims, int queries, const Reach& reach, Scratch& s, const std::byte* const (&next)[kBlocksAhead]) {
  if (queries <= kFewQueries) {
    few_values<T>(dims, queries, reach, s, next);
  } else {
    many_values<T>(dims, queries, reach, s);
  }
}

}  // namespace

}  // namespace unisono::kernels::KERNEL_ISA

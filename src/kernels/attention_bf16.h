// Scores and weighted values of one split with bf16 keys and values: products of pairs, from memory as it is, in half the
// instructions of f32. Queries and exponentials are rounded to bf16; sums are f32. Few queries or many: the same tiles, of
// which the first to pass over a block fetches what comes after it.
#pragma once

#include "kernels/attention_parts.h"

namespace unisono::kernels::KERNEL_ISA {

namespace {

// Scores of MQ queries against NB blocks, into columns from `column`.
template <int MQ, int NB>
UNISONO_INLINE void pair_scores(const Place* places, int dims, bool fetch, Scratch& s, int query, int column) {
  Vec f[MQ][NB];
  clear(f);
  const uint16_t* q = s.rounded_q + query * padded(dims);
  for (int d = 0; d < pairs_of(dims); d++) {
    Pairs k[NB];
    if (fetch) UNISONO_UNROLL for (int j = 0; j < NB; j++) prefetch(places[j].after_keys + d * kPage * 4);
    UNISONO_UNROLL for (int j = 0; j < NB; j++) k[j] =
        load_pairs(reinterpret_cast<const uint16_t*>(places[j].keys + d * kPage * 4));
    UNISONO_UNROLL for (int r = 0; r < MQ; r++) {
      const uint32_t two = two_values(q + r * padded(dims) + 2 * d);
      UNISONO_UNROLL for (int j = 0; j < NB; j++) f[r][j] = dot(f[r][j], k[j], two);
    }
  }
  UNISONO_UNROLL for (int r = 0; r < MQ; r++) UNISONO_UNROLL for (int j = 0; j < NB; j++)
      store(s.p[query + r] + column + kPage * j, f[r][j]);
}
template <int MQ, int NB>
void pair_scores_of(int queries, const Place* places, int dims, bool fetch, Scratch& s, int query, int column) {
  if constexpr (MQ > 1) {
    if (queries < MQ) return pair_scores_of<MQ - 1, NB>(queries, places, dims, fetch, s, query, column);
  }
  pair_scores<MQ, NB>(places, dims, fetch, s, query, column);
}

template <int NB>
void pages_scores(int pages, int first, int dims, int queries, Scratch& s) {
  if constexpr (NB > 1) {
    if (pages < NB) return pages_scores<NB - 1>(pages, first, dims, queries, s);
  }
  each_piece(queries, kPairQueries, [&](int r, int some) {
    pair_scores_of<kPairQueries, NB>(some, s.places + first, dims, r == 0, s, r, first * kPage);
  });
}

void split_scores(Bf16, int dims, int queries, const Reach& reach, Scratch& s) {
  const int first = reach.begin / kPage;
  fetch_after_keys(reach, s);
  each_piece(reach.end / kPage - first, kPairPages, [&](int b, int pages) {
    pages_scores<kPairPages>(pages, first + b, dims, queries, s);
  });
}

// Adds positions [begin, end) of a split to NC x 16 channels from `channel` of MQ queries' values; begin is a block's
// border.
template <int MQ, int NC>
UNISONO_INLINE void pair_values(const Place* places, bool fetch, Scratch& s, int query, int begin, int end, int channel) {
  Vec f[MQ][NC];
  clear(f);
  const auto add_pair = [&](const std::byte* v, int at, bool both) {
    Pairs x[NC];
    UNISONO_UNROLL for (int c = 0; c < NC; c++) {
      x[c] = load_pairs(reinterpret_cast<const uint16_t*>(v + 64 * c));
      if (!both) x[c] = first_of_pairs(x[c]);
    }
    UNISONO_UNROLL for (int r = 0; r < MQ; r++) {
      const uint32_t two = two_values(s.rounded_p[query + r] + at);
      UNISONO_UNROLL for (int c = 0; c < NC; c++) f[r][c] = dot(f[r][c], x[c], two);
    }
  };
  int at = begin;
  for (; at + 1 < end;) {
    const Place& place = places[at / kPage];
    const std::byte *v = place.values + 4 * channel, *after = place.after_values + 4 * channel;
    for (const int stop = lesser(end - 1, at + kPage); at < stop; at += 2) {
      if (fetch) UNISONO_UNROLL for (int c = 0; c < NC; c++) prefetch(after + 64 * c);
      add_pair(v, at, true);
      v += place.value_stride;
      after += place.value_stride;
    }
  }
  // The last position's partner may never have been written.
  if (at < end)
    add_pair(places[at / kPage].values + 4 * channel + at % kPage / 2 * places[at / kPage].value_stride, at, false);
  UNISONO_UNROLL for (int r = 0; r < MQ; r++) UNISONO_UNROLL for (int c = 0; c < NC; c++)
      store(s.state[query + r] + 16 + channel + 16 * c, f[r][c]);
}
template <int MQ, int NC>
void pair_values_of(int queries, const Place* places, bool fetch, Scratch& s, int query, int begin, int end, int channel) {
  if constexpr (MQ > 1) {
    if (queries < MQ) return pair_values_of<MQ - 1, NC>(queries, places, fetch, s, query, begin, end, channel);
  }
  pair_values<MQ, NC>(places, fetch, s, query, begin, end, channel);
}

void split_values(Bf16, int dims, int queries, const Reach& reach, Scratch& s, const std::byte* const (&next)[kBlocksAhead]) {
  fetch_after_values(reach, s, next);
  for (int c = 0; c < padded(dims);) {
    const bool whole = c + 16 * kPairChannels <= padded(dims);
    each_piece(queries, kPairQueries, [&](int r, int some) {
      if (whole) {
        pair_values_of<kPairQueries, kPairChannels>(some, s.places, r == 0, s, r, reach.begin, reach.to, c);
      } else {
        pair_values_of<kPairQueries, 1>(some, s.places, r == 0, s, r, reach.begin, reach.to, c);
      }
    });
    c += whole ? 16 * kPairChannels : 16;
  }
}

}  // namespace

}  // namespace unisono::kernels::KERNEL_ISA

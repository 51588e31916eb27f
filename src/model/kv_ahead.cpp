#include "model/kv_ahead.h"

#include <algorithm>

namespace unisono::model {

namespace {

using kernels::kSplit;

// For each byte that memory gives, cores do about so many multiply-adds in the fastest products (measured: 10 to 16 of int8 on
// two cores of Zen 5). What the weights leave of these bytes is for keys and values.
constexpr int64_t kMultiplyAddsOfByte = 16;
// Of the cache, what is not given to activations and to others.
constexpr double kUsable = 0.75;

int owner_of(const Deal& deal, const BatchSequence& seq, size_t at, int workers) {
  if (!deal.by_rows) return static_cast<int>(at % static_cast<size_t>(workers));
  const int row = deal.buffer_row[static_cast<size_t>(seq.first_row)];
  return static_cast<int>(std::upper_bound(deal.first_row.begin(), deal.first_row.end(), row) - deal.first_row.begin()) - 1;
}

}  // namespace

void plan_kv_ahead(const Batch& batch, const SharedPrefixes& prefixes, const Deal& deal, int workers, int window, bool window_table,
                   KvAhead& ahead) {
  ahead.blocks.clear();
  ahead.first.clear();
  for (int w = 0; w < workers; w++) {
    ahead.first.push_back(static_cast<int>(ahead.blocks.size()));
    for (size_t i = 0; i < prefixes.order.size(); i++) {
      const BatchSequence& seq = batch.sequences[static_cast<size_t>(prefixes.order[i])];
      if (owner_of(deal, seq, i, workers) != w) continue;
      // What the sequence before it in this order fetches too needs no second time.
      const int begin = window > 0 ? std::max(0, seq.first_position - window + 1) : prefixes.common[i] * kSplit;
      const auto table = window_table ? seq.window_table : seq.block_table;
      for (int b = begin / kBlockTokens; b < blocks_for(seq.first_position); b++)
        ahead.blocks.push_back(table[static_cast<size_t>(b)]);
    }
  }
  ahead.first.push_back(static_cast<int>(ahead.blocks.size()));
}

FetchShare FetchShare::of(std::span<const Linear* const> products, int64_t rows, size_t bytes, size_t cache) {
  FetchShare best;
  int64_t weights = 0, multiply_adds = 0;
  double most = 0;
  for (size_t n = 1; n <= products.size(); n++) {
    const Linear& product = *products[products.size() - n];
    weights += static_cast<int64_t>(product.bytes());
    multiply_adds += rows * product.k() * product.columns();
    const auto idle = static_cast<double>(multiply_adds / kMultiplyAddsOfByte - weights);
    const double fits = kUsable * static_cast<double>(cache) - static_cast<double>(weights);
    const double fetched = std::min({static_cast<double>(bytes), idle, fits});
    if (fetched <= most) continue;
    most = fetched;
    best = {n, fetched / static_cast<double>(bytes), fetched / static_cast<double>(multiply_adds)};
  }
  return best;
}

void KvFetcher::begin(const KvAhead& ahead, const std::array<const Linear*, kProducts>& products, int64_t rows, const kernels::KvView& kv,
                      size_t block_bytes) {
  products_ = {};
  if (ahead.blocks.empty()) return;
  // Of all workers, those that share a cache.
  const int64_t all = worker_.count(), together = std::min<int64_t>(all, cache_.threads);
  const size_t bytes = block_bytes * ahead.blocks.size() * static_cast<size_t>(together) / static_cast<size_t>(all);
  const FetchShare share = FetchShare::of(products, rows * together / all, bytes, cache_.bytes);
  std::copy(products.end() - static_cast<std::ptrdiff_t>(share.products), products.end(), products_.begin());
  const auto mine = ahead.of(worker_.index());
  later_ = {.base = kv.base,
            .stride = kv.stride,
            .chunks = mine.first(static_cast<size_t>(share.part * static_cast<double>(mine.size()))),
            .chunk_lines = static_cast<int>(block_bytes / 64),
            .pace = share.pace * (kernels::kBlock * kernels::kLanes / 64)};
}

kernels::Later* KvFetcher::beside(const Linear& linear) {
  return std::find(products_.begin(), products_.end(), &linear) != products_.end() ? &later_ : nullptr;
}

}  // namespace unisono::model

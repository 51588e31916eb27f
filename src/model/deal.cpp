#include "model/deal.h"

#include <algorithm>
#include <numeric>

namespace unisono::model {

namespace {
// Where a row shares so many positions of its context with others, on average, reading them once for all is worth more than
// keeping rows.
constexpr int kPositionsToShare = 64;
}  // namespace

void make_deal(const Batch& batch, int workers, const DealTerms& terms, int64_t saved_positions, Deal& deal) {
  deal.tiles.clear();
  int rows = 0;
  for (size_t s = 0; s < batch.sequences.size(); s++) {
    const BatchSequence& seq = batch.sequences[s];
    // A long prompt: as many tiles for each worker, of even sizes, so that all have the same to do.
    int n = (seq.n_rows + terms.tile_tokens - 1) / terms.tile_tokens;
    if (seq.n_rows >= terms.rows_to_keep * workers) n = (n + 2 * workers - 1) / (2 * workers) * (2 * workers);
    for (int i = 0; i < n; i++) {
      const int begin = seq.n_rows * i / n, end = seq.n_rows * (i + 1) / n;
      deal.tiles.push_back({static_cast<int>(s), seq.first_row + begin, 0, end - begin, seq.first_position + begin});
    }
    rows += seq.n_rows;
  }
  deal.by_rows = rows >= terms.rows_to_keep * workers && saved_positions < int64_t{kPositionsToShare} * rows;

  // Rows dealt: the dearest tile first, each to the worker with the least to do.
  std::vector<int>& owner = deal.owner;
  owner.assign(deal.tiles.size(), 0);
  if (deal.by_rows && workers > 1) {
    auto cost = [&](const Tile& t) { return t.tokens * (terms.attention_unit + t.first_position + t.tokens); };
    deal.order.resize(deal.tiles.size());
    std::iota(deal.order.begin(), deal.order.end(), 0);
    std::sort(deal.order.begin(), deal.order.end(), [&](int a, int b) {
      const double x = cost(deal.tiles[static_cast<size_t>(a)]), y = cost(deal.tiles[static_cast<size_t>(b)]);
      return x != y ? x > y : a < b;
    });
    deal.load.assign(static_cast<size_t>(workers), 0);
    for (int t : deal.order) {
      const auto least = std::min_element(deal.load.begin(), deal.load.end());
      owner[static_cast<size_t>(t)] = static_cast<int>(least - deal.load.begin());
      *least += cost(deal.tiles[static_cast<size_t>(t)]);
    }
    deal.sorted.clear();
    for (int w = 0; w < workers; w++)
      for (size_t t = 0; t < deal.tiles.size(); t++)
        if (owner[t] == w) deal.sorted.push_back(deal.tiles[t]);
    std::sort(owner.begin(), owner.end());
    deal.tiles.swap(deal.sorted);
  }

  deal.first_tile.assign(static_cast<size_t>(workers) + 1, static_cast<int>(deal.tiles.size()));
  deal.first_row.assign(static_cast<size_t>(workers) + 1, rows);
  deal.batch_row.resize(static_cast<size_t>(rows));
  deal.buffer_row.resize(static_cast<size_t>(rows));
  deal.sequence.resize(static_cast<size_t>(rows));
  deal.position.resize(static_cast<size_t>(rows));
  int row = 0;
  for (size_t t = 0; t < deal.tiles.size(); t++) {
    for (int w = 0; w <= owner[t]; w++) {
      deal.first_tile[static_cast<size_t>(w)] = std::min(deal.first_tile[static_cast<size_t>(w)], static_cast<int>(t));
      deal.first_row[static_cast<size_t>(w)] = std::min(deal.first_row[static_cast<size_t>(w)], row);
    }
    Tile& tile = deal.tiles[t];
    tile.row = row;
    for (int i = 0; i < tile.tokens; i++, row++) {
      deal.batch_row[static_cast<size_t>(row)] = tile.batch_row + i;
      deal.buffer_row[static_cast<size_t>(tile.batch_row + i)] = row;
      deal.sequence[static_cast<size_t>(row)] = tile.sequence;
      deal.position[static_cast<size_t>(row)] = tile.first_position + i;
    }
  }
}

}  // namespace unisono::model

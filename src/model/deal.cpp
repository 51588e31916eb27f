#include "model/deal.h"

#include <algorithm>
#include <numeric>

namespace unisono::model {

namespace {
// Below this, a worker's products read the weights for too few rows to be worth reading them all.
constexpr int kRowsForARow = 48;
}  // namespace

void make_deal(const Batch& batch, int workers, int tile_tokens, double row_cost, double position_cost, Deal& deal) {
  deal.tiles.clear();
  int rows = 0;
  for (size_t s = 0; s < batch.sequences.size(); s++) {
    const BatchSequence& seq = batch.sequences[s];
    for (int at = 0; at < seq.n_rows; at += tile_tokens)
      deal.tiles.push_back({static_cast<int>(s), seq.first_row + at, 0, std::min(tile_tokens, seq.n_rows - at), seq.first_position + at});
    rows += seq.n_rows;
  }
  deal.by_rows = rows >= kRowsForARow * workers;

  // Rows dealt: the dearest tile first, each to the worker with the least to do.
  std::vector<int> owner(deal.tiles.size(), 0);
  if (deal.by_rows && workers > 1) {
    auto cost = [&](const Tile& t) { return t.tokens * (row_cost + position_cost * (t.first_position + t.tokens)); };
    std::vector<int> order(deal.tiles.size());
    std::iota(order.begin(), order.end(), 0);
    std::stable_sort(order.begin(), order.end(), [&](int a, int b) {
      return cost(deal.tiles[static_cast<size_t>(a)]) > cost(deal.tiles[static_cast<size_t>(b)]);
    });
    std::vector<double> load(static_cast<size_t>(workers), 0);
    for (int t : order) {
      const auto least = std::min_element(load.begin(), load.end());
      owner[static_cast<size_t>(t)] = static_cast<int>(least - load.begin());
      *least += cost(deal.tiles[static_cast<size_t>(t)]);
    }
    std::vector<Tile> sorted;
    for (int w = 0; w < workers; w++)
      for (size_t t = 0; t < deal.tiles.size(); t++)
        if (owner[t] == w) sorted.push_back(deal.tiles[t]);
    std::sort(owner.begin(), owner.end());
    deal.tiles = std::move(sorted);
  }

  deal.first_tile.assign(static_cast<size_t>(workers) + 1, static_cast<int>(deal.tiles.size()));
  deal.first_row.assign(static_cast<size_t>(workers) + 1, rows);
  deal.batch_row.resize(static_cast<size_t>(rows));
  deal.buffer_row.resize(static_cast<size_t>(rows));
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
    }
  }
}

}  // namespace unisono::model

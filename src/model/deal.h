// How one step's work is dealt to threads. Bits never depend on it: it only decides who computes what, and in which order
// rows lie in the step's buffers.
#pragma once

#include <cstdint>
#include <vector>

#include "model/batch.h"

namespace unisono::model {

// Consecutive tokens of one sequence whose attention is computed together.
struct Tile {
  int sequence = 0;
  int batch_row = 0;       // in the batch
  int row = 0;             // in the step's buffers
  int tokens = 0;
  int first_position = 0;
};

struct Deal {
  // true: each worker takes its rows through a whole layer and meets the others once, for keys and values. false: each
  // takes a part of every product's panels, for all rows.
  bool by_rows = false;
  std::vector<Tile> tiles{};       // those of worker w are [first_tile[w], first_tile[w + 1])
  std::vector<int> first_tile{};   // [workers + 1]
  std::vector<int> first_row{};    // [workers + 1], buffer rows
  std::vector<int> batch_row{};    // [rows] buffer row -> batch row
  std::vector<int> buffer_row{};   // [rows] batch row -> buffer row
  std::vector<int> sequence{};     // [rows] of a buffer row
  std::vector<int> position{};     // [rows] of a buffer row

  int rows() const { return static_cast<int>(batch_row.size()); }

  // Working memory of make_deal(), kept so that a step allocates nothing.
  std::vector<int> owner{}, order{};
  std::vector<double> load{};
  std::vector<Tile> sorted{};
};

// What of a model a deal depends on.
struct DealTerms {
  int tile_tokens = 1;        // most tokens of a tile
  double attention_unit = 1;  // so many positions of context take a row as long to attend to as all the rest of it takes
  // With so many rows each, workers keep them: with fewer, a worker's products read the weights for too few rows to be worth
  // reading them all.
  int rows_to_keep = 32;
};

// saved_positions: of context that are read once for several sequences, where workers don't keep their rows. Reuses the
// memory of `deal`.
void make_deal(const Batch& batch, int workers, const DealTerms& terms, int64_t saved_positions, Deal& deal);

}  // namespace unisono::model

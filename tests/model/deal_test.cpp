// Dealing rows: each row once, tiles in one sequence, and no worker with much more than its part.
#include "model/deal.h"
#include "model/shared_prefixes.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

namespace unisono::model {
namespace {

struct Sequences {
  std::vector<BatchSequence> list{};
  std::vector<int32_t> tokens{};
  Batch batch() const { return {tokens, list, {}}; }
};

Sequences random_batch(std::mt19937& random, int most) {
  Sequences s;
  const int n = 1 + static_cast<int>(random() % 20);
  for (int i = 0; i < n; i++) {
    const int rows = random() % 2 ? 1 : 1 + static_cast<int>(random() % static_cast<unsigned>(most));
    s.list.push_back({static_cast<int32_t>(s.tokens.size()), rows, static_cast<int32_t>(random() % 3000), {}});
    s.tokens.resize(s.tokens.size() + static_cast<size_t>(rows));
  }
  return s;
}

TEST(Deal, EveryRowOnceAndTilesWithinSequences) {
  std::mt19937 random(5);
  Deal deal;
  for (int round = 0; round < 500; round++) {
    const Sequences s = random_batch(random, round % 2 ? 300 : 20);
    const int workers = 1 + static_cast<int>(random() % 4);
    make_deal(s.batch(), workers, {.tile_tokens = 12, .attention_unit = 1e6 / 2304}, 0, deal);
    ASSERT_EQ(deal.rows(), static_cast<int>(s.tokens.size()));
    for (int r = 0; r < deal.rows(); r++)
      ASSERT_EQ(deal.buffer_row[static_cast<size_t>(deal.batch_row[static_cast<size_t>(r)])], r);
    int row = 0;
    for (const Tile& t : deal.tiles) {
      const BatchSequence& seq = s.list[static_cast<size_t>(t.sequence)];
      ASSERT_EQ(t.row, row);
      ASSERT_GE(t.batch_row, seq.first_row);
      ASSERT_LE(t.batch_row + t.tokens, seq.first_row + seq.n_rows);
      ASSERT_EQ(t.first_position - seq.first_position, t.batch_row - seq.first_row);
      for (int i = 0; i < t.tokens; i++) ASSERT_EQ(deal.batch_row[static_cast<size_t>(row + i)], t.batch_row + i);
      row += t.tokens;
    }
    ASSERT_EQ(row, deal.rows());
    ASSERT_EQ(deal.first_row.front(), 0);
    ASSERT_EQ(deal.first_row.back(), deal.rows());
    ASSERT_TRUE(std::is_sorted(deal.first_row.begin(), deal.first_row.end()));
    for (size_t w = 0; deal.by_rows && w < static_cast<size_t>(workers); w++) {
      if (deal.first_tile[w] == deal.first_tile[w + 1]) continue;
      ASSERT_EQ(deal.tiles[static_cast<size_t>(deal.first_tile[w])].row, deal.first_row[w]);
    }
  }
}

TEST(Deal, ALongPromptIsDealtEvenly) {
  std::vector<int32_t> tokens(512);
  const BatchSequence seq{0, 512, 0, {}};
  Deal deal;
  make_deal({tokens, {&seq, 1}, {}}, 2, {.tile_tokens = 12, .attention_unit = 3.5e6 / 2304}, 0, deal);
  ASSERT_TRUE(deal.by_rows);
  double cost[2] = {};
  for (size_t t = 0; t < deal.tiles.size(); t++) {
    const Tile& tile = deal.tiles[t];
    cost[static_cast<int>(t) >= deal.first_tile[1]] += tile.tokens * (3.5e6 + 2304.0 * (tile.first_position + tile.tokens));
  }
  EXPECT_NEAR(cost[0], cost[1], 0.02 * cost[0]);
}

TEST(Deal, FewRowsAreNotDealtByRows) {
  std::vector<int32_t> tokens(16);
  std::vector<BatchSequence> list;
  for (int i = 0; i < 16; i++) list.push_back({i, 1, 100, {}});
  Deal deal;
  make_deal({tokens, list, {}}, 2, {.tile_tokens = 12, .attention_unit = 1e6 / 2304}, 0, deal);
  EXPECT_FALSE(deal.by_rows);
}

TEST(Deal, SequencesThatShareMuchAreNotDealtByRows) {
  std::vector<int32_t> tokens(64);
  std::vector<BatchSequence> list;
  for (int i = 0; i < 64; i++) list.push_back({i, 1, 600, {}});
  Deal deal;
  for (const auto& [saved, by_rows] : {std::pair{0, true}, {64 * 63, true}, {512 * 63, false}}) {
    make_deal({tokens, list, {}}, 2, {.tile_tokens = 12, .attention_unit = 1e6 / 2304}, saved, deal);
    EXPECT_EQ(deal.by_rows, by_rows) << saved;
  }
}

TEST(SharedPrefixes, AreFoundInWholeSplits) {
  // Two sequences that share 40 blocks, of which two splits of 16 are whole; one that shares the first 16; a stranger; and one
  // that has the blocks, but not yet behind it.
  std::vector<std::vector<int32_t>> tables(5);
  for (int b = 0; b < 50; b++)
    for (int s = 0; s < 5; s++) {
      const int same = s < 2 || s == 4 ? 40 : s == 2 ? 16 : 0;
      tables[static_cast<size_t>(s)].push_back(b < same ? b : 100 * (s + 1) + b);
    }
  std::vector<BatchSequence> list;
  for (int s = 0; s < 5; s++) list.push_back({s, 1, s == 4 ? 200 : 700, tables[static_cast<size_t>(s)]});
  const std::vector<int32_t> tokens(5);
  SharedPrefixes prefixes;
  find_shared({tokens, list, {}}, prefixes);
  EXPECT_EQ(prefixes.shared, (std::vector<int>{2, 2, 1, 0, 0}));
  EXPECT_EQ(prefixes.saved_positions(), (2 + 1) * 256);
}

}  // namespace
}  // namespace unisono::model

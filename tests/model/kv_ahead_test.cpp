// What is fetched ahead of attention: each block once, of what rows see; and no more than memory and cache have room for.
#include "model/kv_ahead.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>

namespace unisono::model {
namespace {

struct Sequences {
  std::vector<std::vector<int32_t>> tables{};
  std::vector<BatchSequence> list{};
  std::vector<int32_t> tokens{};

  void add(int rows, int first_position, std::vector<int32_t> table) {
    tables.push_back(std::move(table));
    list.push_back({static_cast<int32_t>(tokens.size()), rows, first_position, tables.back(), tables.back()});
    tokens.resize(tokens.size() + static_cast<size_t>(rows));
  }
  KvAhead plan(int workers, int window, int rows_to_keep) {
    for (size_t s = 0; s < list.size(); s++) list[s].block_table = list[s].window_table = tables[s];
    const Batch batch{tokens, list, {}};
    SharedPrefixes prefixes;
    find_shared(batch, prefixes);
    make_deal(batch, workers, {.tile_tokens = 12, .attention_unit = 100, .rows_to_keep = rows_to_keep}, 0, deal);
    KvAhead ahead;
    plan_kv_ahead(batch, prefixes, deal, workers, window, window > 0, ahead);
    return ahead;
  }
  Deal deal{};
};

std::vector<int32_t> blocks(int first, int n) {
  std::vector<int32_t> all(static_cast<size_t>(n));
  std::iota(all.begin(), all.end(), first);
  return all;
}
std::vector<int32_t> sorted(std::vector<int32_t> all) {
  std::ranges::sort(all);
  return all;
}

TEST(KvAhead, EachBlockOnceWhoeverSharesIt) {
  for (const int rows_to_keep : {1, 100}) {
    Sequences s;
    auto shared = blocks(0, 40);  // 640 positions: two splits are whole
    auto other = blocks(0, 32);
    const auto own = blocks(100, 8);
    other.insert(other.end(), own.begin(), own.end());
    s.add(1, 639, shared);
    s.add(1, 630, other);
    s.add(1, 33, blocks(200, 3));
    s.add(1, 0, blocks(300, 1));  // nothing before it
    for (const int workers : {1, 2, 3}) {
      const KvAhead ahead = s.plan(workers, 0, rows_to_keep);
      auto want = blocks(0, 40);
      for (const int b : blocks(100, 8)) want.push_back(b);
      for (const int b : blocks(200, 3)) want.push_back(b);
      EXPECT_EQ(sorted(ahead.blocks), want);
      ASSERT_EQ(ahead.first.size(), static_cast<size_t>(workers) + 1);
      size_t all = 0;
      for (int w = 0; w < workers; w++) all += ahead.of(w).size();
      EXPECT_EQ(all, ahead.blocks.size());
    }
  }
}

TEST(KvAhead, WhoKeepsRowsFetchesTheirBlocks) {
  Sequences s;
  for (int i = 0; i < 7; i++) s.add(1, 100 + i, blocks(20 * i, 7));
  const KvAhead ahead = s.plan(3, 0, 1);
  ASSERT_TRUE(s.deal.by_rows);
  for (int w = 0; w < 3; w++)
    for (const int32_t block : ahead.of(w)) {
      const int row = s.deal.buffer_row[static_cast<size_t>(block / 20)];
      EXPECT_GE(row, s.deal.first_row[static_cast<size_t>(w)]);
      EXPECT_LT(row, s.deal.first_row[static_cast<size_t>(w) + 1]);
    }
}

// Entries before the window are given up, and may be anything.
TEST(KvAhead, BeginsWhereTheWindowDoes) {
  Sequences s;
  auto table = blocks(0, 40);
  std::fill_n(table.begin(), 31, -1);  // positions 496 and later are seen from 505 on
  s.add(20, 600, table);
  const KvAhead ahead = s.plan(2, 105, 100);
  EXPECT_EQ(sorted(ahead.blocks), blocks(31, 38 - 31));
}

// Products [n][k] in Q8_0, some 1.06 bytes a weight.
struct Products {
  explicit Products(std::initializer_list<int64_t> outputs) {
    for (const int64_t n : outputs) {
      const TensorView view{.type = DType::q8_0, .n_dims = 2, .dims = {n, 1024}, .data = nullptr};
      linears.push_back(Linear({{"w", view, {}}}, Activations::int8));
    }
    for (const Linear& l : linears) list.push_back(&l);
  }
  std::vector<Linear> linears{};
  std::vector<const Linear*> list{};
};
constexpr size_t kMiB = size_t{1} << 20;

TEST(FetchShare, NothingWhereWeightsTakeAllOfMemorysTime) {
  const Products p({1024, 6144, 1024, 2048});
  EXPECT_EQ(FetchShare::of(p.list, 1, kMiB, 32 * kMiB).products, 0u);
  EXPECT_EQ(FetchShare::of(p.list, 16, kMiB, 32 * kMiB).part, 0);
  EXPECT_EQ(FetchShare::of(p.list, 64, 8 * kMiB, 0).part, 0);  // no cache is known
}

TEST(FetchShare, AllOfItWhereThereIsRoom) {
  const Products p({1024, 6144, 1024, 2048});
  const FetchShare share = FetchShare::of(p.list, 64, 4 * kMiB, 32 * kMiB);
  EXPECT_EQ(share.part, 1);
  EXPECT_GT(share.products, 0u);
}

// Weights of 10 MiB and what is fetched must fit in three quarters of 12 MiB: only the last products can fetch.
TEST(FetchShare, LateEnoughToStayInTheCache) {
  const Products p({1024, 6144, 1024, 2048});
  const FetchShare share = FetchShare::of(p.list, 512, 4 * kMiB, 12 * kMiB);
  EXPECT_EQ(share.part, 1);
  EXPECT_LE(share.products, 2u);
  const FetchShare more = FetchShare::of(p.list, 512, 40 * kMiB, 12 * kMiB);
  EXPECT_LT(more.part, 0.25);
  EXPECT_GT(more.part, 0.1);
}

}  // namespace
}  // namespace unisono::model

#include "engine/block_pool.h"

#include <gtest/gtest.h>

#include <list>
#include <random>

namespace unisono::engine {
namespace {

TEST(BlockPool, TakesWhatWasReleasedLongestAgo) {
  BlockPool pool(3);
  const BlockId a = pool.acquire(), b = pool.acquire(), c = pool.acquire();
  pool.release(b);
  pool.release(c);
  pool.release(a);
  EXPECT_EQ(pool.acquire(), b);
  EXPECT_EQ(pool.acquire(), c);
  EXPECT_EQ(pool.acquire(), a);
}

TEST(BlockPool, AFreeBlockCanBeTakenBack) {
  BlockPool pool(2);
  const BlockId a = pool.acquire();
  pool.release(a);
  pool.share(a);
  EXPECT_EQ(pool.references(a), 1);
  EXPECT_EQ(pool.n_free(), 1);
  EXPECT_NE(pool.acquire(), a);
  pool.audit();
}

// Random operations against a model that keeps references in a map and the free blocks in a list.
TEST(BlockPool, EqualsASimpleModel) {
  std::mt19937 rng(1);
  for (int round = 0; round < 20; round++) {
    const int n = 1 + static_cast<int>(rng() % 12);
    BlockPool pool(n);
    std::vector<int> references(static_cast<size_t>(n), 0);
    std::list<BlockId> free;
    for (BlockId b = 0; b < n; b++) free.push_back(b);
    for (int op = 0; op < 500; op++) {
      const auto block = static_cast<BlockId>(rng() % static_cast<unsigned>(n));
      int& count = references[static_cast<size_t>(block)];
      switch (rng() % 3) {
        case 0:
          if (free.empty()) break;
          ASSERT_EQ(pool.acquire(), free.front());
          references[static_cast<size_t>(free.front())] = 1;
          free.pop_front();
          break;
        case 1:
          pool.share(block);
          if (count++ == 0) free.remove(block);
          break;
        case 2:
          if (count == 0) break;
          pool.release(block);
          if (--count == 0) free.push_back(block);
          break;
      }
      pool.audit();
      ASSERT_EQ(pool.n_free(), static_cast<int>(free.size()));
    }
  }
}

}  // namespace
}  // namespace unisono::engine

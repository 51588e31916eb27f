#include "text/hash_index.h"

#include <gtest/gtest.h>

#include <map>
#include <random>
#include <string>
#include <utility>

namespace unisono::text {
namespace {

// Random pairs and values up to the limits, and the limits themselves, in a table as full as it may be.
TEST(PairIndex, FindsWhatAMapFinds) {
  std::mt19937 random(1);
  for (const PairIndex::Limits& limits :
       {PairIndex::Limits{0, 0, 0}, PairIndex::Limits{3, 200, 90}, PairIndex::Limits{(1 << 21) - 1, (1 << 21) - 1, (1 << 22) - 2},
        PairIndex::Limits{1 << 27, 0xFF, 1 << 27}}) {
    ASSERT_TRUE(PairIndex::fits(limits));
    const auto up_to = [&](int32_t largest) { return std::uniform_int_distribution<int32_t>(0, largest)(random); };
    std::map<std::pair<int32_t, int32_t>, int32_t> expected;
    constexpr size_t kPairs = 500;
    PairIndex index(kPairs, limits);
    for (size_t i = 0; i < kPairs; i++) {
      const std::pair pair = i == 0 ? std::pair(limits.left, limits.right) : std::pair(up_to(limits.left), up_to(limits.right));
      const int32_t value = i == 0 ? limits.value : up_to(limits.value);
      EXPECT_EQ(index.insert(pair.first, pair.second, value), expected.emplace(pair, value).second);
    }
    for (const auto& [pair, value] : expected) EXPECT_EQ(index.find(pair.first, pair.second), value);
    for (int i = 0; i < 2000; i++) {
      const std::pair pair(up_to(limits.left), up_to(limits.right));
      const auto found = expected.find(pair);
      EXPECT_EQ(index.find(pair.first, pair.second), found == expected.end() ? -1 : found->second);
    }
  }
}

TEST(PairIndex, TellsWhatDoesNotFit) {
  EXPECT_TRUE(PairIndex::fits({(1 << 21) - 1, (1 << 21) - 1, (1 << 22) - 2}));
  EXPECT_FALSE(PairIndex::fits({(1 << 21) - 1, (1 << 21) - 1, (1 << 22) - 1}));
  EXPECT_FALSE(PairIndex::fits({1 << 21, (1 << 21) - 1, (1 << 22) - 2}));
  EXPECT_FALSE(PairIndex::fits({INT32_MAX, INT32_MAX, INT32_MAX}));
}

TEST(PairIndex, WithoutPairsFindsNothing) {
  EXPECT_EQ(PairIndex().find(0, 0), -1);
  EXPECT_EQ(PairIndex(0, {5, 5, 0}).find(5, 5), -1);
}

TEST(TextIndex, FindsEachTextAndNoOther) {
  Texts texts;
  for (int i = 0; i < 3000; i++) texts.add(std::to_string(i * 7) + std::string(static_cast<size_t>(i % 40), 'a'));
  TextIndex index(texts);
  for (size_t i = 0; i < texts.size(); i++) EXPECT_TRUE(index.insert(static_cast<TokenId>(i)));
  for (size_t i = 0; i < texts.size(); i++) {
    EXPECT_EQ(index.find(texts[i]), static_cast<TokenId>(i));
    EXPECT_FALSE(index.insert(static_cast<TokenId>(i)));
    EXPECT_EQ(index.find(std::string(texts[i]) + "b"), -1);
  }
  EXPECT_EQ(TextIndex().find("a"), -1);
}

}  // namespace
}  // namespace unisono::text

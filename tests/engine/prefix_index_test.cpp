#include "engine/prefix_index.h"

#include <gtest/gtest.h>

#include <map>
#include <numeric>
#include <random>

namespace unisono::engine {
namespace {

std::vector<TokenId> counting(TokenId first, int n) {
  std::vector<TokenId> tokens(static_cast<size_t>(n));
  std::iota(tokens.begin(), tokens.end(), first);
  return tokens;
}

BlockTokens block_of(const std::vector<TokenId>& tokens, size_t block) {
  return std::span<const TokenId>(tokens).subspan(block * model::kBlockTokens).first<model::kBlockTokens>();
}

std::vector<BlockId> found(const PrefixIndex& index, const std::vector<TokenId>& tokens, std::string_view salt = "",
                           int max_blocks = 100) {
  std::vector<BlockId> blocks{99};
  index.find(salt, tokens, max_blocks, blocks);
  return blocks;
}

TEST(PrefixIndex, FindsTheLongestBeginning) {
  PrefixIndex index(10);
  const auto text = counting(0, 48);
  EXPECT_EQ(index.enter("", PrefixIndex::kNone, block_of(text, 0), 7), 7);
  EXPECT_EQ(index.enter("", 7, block_of(text, 1), 3), 3);
  index.audit();
  EXPECT_EQ(found(index, text), (std::vector<BlockId>{7, 3}));
  EXPECT_EQ(found(index, text, "", 1), (std::vector<BlockId>{7}));
  EXPECT_EQ(found(index, text, "", 0), (std::vector<BlockId>{}));
  EXPECT_EQ(found(index, counting(0, 31)), (std::vector<BlockId>{7})) << "full blocks only";
  EXPECT_EQ(found(index, counting(16, 32)), (std::vector<BlockId>{})) << "the same tokens after others are others";
  auto other = text;
  other[15]++;
  EXPECT_EQ(found(index, other), (std::vector<BlockId>{}));
}

TEST(PrefixIndex, OneBlockForOneContent) {
  PrefixIndex index(10);
  const auto text = counting(0, 16);
  EXPECT_EQ(index.enter("", PrefixIndex::kNone, block_of(text, 0), 1), 1);
  EXPECT_EQ(index.enter("", PrefixIndex::kNone, block_of(text, 0), 2), 1);
  EXPECT_FALSE(index.contains(2));
  index.forget(2);
  index.forget(1);
  EXPECT_EQ(index.size(), 0);
  EXPECT_EQ(found(index, text), (std::vector<BlockId>{}));
  EXPECT_EQ(index.enter("", PrefixIndex::kNone, block_of(text, 0), 2), 2);
  index.audit();
}

TEST(PrefixIndex, SaltsAreWorldsApart) {
  // Also where every hash is the same.
  for (const BlockHash hash : {BlockHash{chained_hash}, BlockHash{[](uint64_t, BlockTokens) { return uint64_t{5}; }}}) {
    PrefixIndex index(10, hash);
    const auto text = counting(0, 32);
    BlockId block = 0;
    for (const char* salt : {"", "a", "b", "ab"}) {
      EXPECT_EQ(found(index, text, salt), (std::vector<BlockId>{}));
      EXPECT_EQ(index.enter(salt, PrefixIndex::kNone, block_of(text, 0), block), block);
      EXPECT_EQ(index.enter(salt, block, block_of(text, 1), block + 1), block + 1);
      block += 2;
    }
    block = 0;
    for (const char* salt : {"", "a", "b", "ab"}) {
      EXPECT_EQ(found(index, text, salt), (std::vector<BlockId>{block, block + 1}));
      block += 2;
    }
    EXPECT_EQ(found(index, text, "c"), (std::vector<BlockId>{}));
    index.audit();
  }
}

// Random entering and forgetting against a map from whole beginnings to blocks, with good hashes and with bad ones.
TEST(PrefixIndex, EqualsASimpleModel) {
  const BlockHash hashes[] = {chained_hash, [](uint64_t parent, BlockTokens t) { return chained_hash(parent, t) & 3; },
                              [](uint64_t, BlockTokens) { return uint64_t{0}; }};
  for (const BlockHash hash : hashes) {
    for (unsigned seed = 0; seed < 20; seed++) {
      std::mt19937 rng(seed);
      constexpr int kBlocks = 24;
      PrefixIndex index(kBlocks, hash);
      std::map<std::vector<TokenId>, BlockId> model;  // the salt, then the tokens
      std::vector<std::vector<TokenId>> content(kBlocks);
      for (int op = 0; op < 400; op++) {
        std::vector<TokenId> key{static_cast<TokenId>(rng() % 2)}, text;
        for (int b = 0; b < 4; b++) text.insert(text.end(), model::kBlockTokens, static_cast<TokenId>(rng() % 2));
        const std::string salt(static_cast<size_t>(key[0]), 's');
        std::vector<BlockId> expected;
        for (size_t b = 0; b < 4; b++) {
          key.insert(key.end(), text.begin() + static_cast<int>(b) * 16, text.begin() + static_cast<int>(b) * 16 + 16);
          const auto known = model.find(key);
          if (known == model.end()) break;
          expected.push_back(known->second);
        }
        ASSERT_EQ(found(index, text, salt), expected);
        const auto block = static_cast<BlockId>(rng() % kBlocks);
        if (!index.contains(block) && expected.size() < 4) {
          const BlockId parent = expected.empty() ? PrefixIndex::kNone : expected.back();
          ASSERT_EQ(index.enter(salt, parent, block_of(text, expected.size()), block), block);
          model[key] = block;
          content[static_cast<size_t>(block)] = key;
        } else if (index.contains(block)) {
          // Only leaves are forgotten.
          const auto& mine = content[static_cast<size_t>(block)];
          const auto next = model.upper_bound(mine);
          const bool leaf = next == model.end() || next->first.size() <= mine.size() ||
                            !std::equal(mine.begin(), mine.end(), next->first.begin());
          if (leaf) {
            index.forget(block);
            model.erase(mine);
          }
        }
        ASSERT_EQ(index.size(), static_cast<int>(model.size()));
        index.audit();
      }
    }
  }
}

}  // namespace
}  // namespace unisono::engine

// Which block holds which beginning of a text: full blocks by chained hash, verified by their tokens. Knows neither who
// holds a block nor when it is taken again; never answers by a hash alone.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "engine/block_pool.h"
#include "engine/request.h"
#include "model/batch.h"

namespace unisono::engine {

using BlockTokens = std::span<const TokenId, model::kBlockTokens>;

// Of a block's tokens after everything before it.
using BlockHash = uint64_t (*)(uint64_t parent, BlockTokens tokens);
uint64_t chained_hash(uint64_t parent, BlockTokens tokens);

// Two blocks are the same when their tokens are, and the blocks before them (the salts, for first blocks); a content has at
// most one block here. A block's parent stays as long as the block does: whoever holds a block holds its parent and
// releases it later, so that children are forgotten first. All memory is taken at the beginning, but for the salts; it
// becomes resident with the blocks that are entered, as a pool gives out its first blocks first.
class PrefixIndex {
 public:
  explicit PrefixIndex(int n_blocks, BlockHash hash = chained_hash);

  // The blocks with the longest known beginning of `tokens`, at most max_blocks, in order. Replaces `found`.
  void find(std::string_view salt, std::span<const TokenId> tokens, int max_blocks, std::vector<BlockId>& found) const;
  // A block that holds the keys and values of these tokens after those of `parent` (kNone: at the beginning, under this
  // salt). Gives the block to use from now on: another one that was here with the same content, or itself.
  BlockId enter(std::string_view salt, BlockId parent, BlockTokens tokens, BlockId block);
  // The block is about to be overwritten. Unknown blocks are ignored.
  void forget(BlockId block);

  int size() const { return size_; }
  bool contains(BlockId block) const { return position(block) < entries_.size() && entry(block).known; }
  bool holds(BlockId block, std::string_view salt, BlockId parent, BlockTokens tokens) const;

  // Recounts everything; check()s hashes, parents, chains and that no content has two blocks.
  void audit() const;

  static constexpr BlockId kNone = -1;

 private:
  struct Entry {
    std::array<TokenId, model::kBlockTokens> tokens{};
    uint64_t hash = 0;
    std::string salt{};  // of first blocks; the others have their parent's
    BlockId parent = kNone;
    BlockId next = kNone;  // in the same bucket
    int32_t n_children = 0;
    bool known = false;
  };
  size_t position(BlockId block) const;
  Entry& entry(BlockId block);
  const Entry& entry(BlockId block) const;
  uint64_t hash_of(std::string_view salt, BlockId parent, BlockTokens tokens) const;
  BlockId lookup(uint64_t hash, std::string_view salt, BlockId parent, BlockTokens tokens) const;
  size_t bucket(uint64_t hash) const { return static_cast<size_t>(hash) & (buckets_.size() - 1); }

  int n_blocks_;
  BlockHash hash_;
  std::vector<Entry> entries_{};    // of the blocks up to the last that was ever entered
  std::vector<BlockId> buckets_{};  // the first block of each chain
  int size_ = 0;
};

}  // namespace unisono::engine

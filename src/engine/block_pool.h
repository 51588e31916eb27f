// Who holds which block of the key/value store: reference counts and the order in which free blocks are taken again. Knows
// neither tokens nor the memory behind a block number. Every operation is O(1) per block.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace unisono::engine {

using BlockId = int32_t;  // as model/batch.h has it: block tables go to the model as they are

class BlockPool {
 public:
  explicit BlockPool(int n_blocks);

  int n_blocks() const { return static_cast<int>(references_.size()); }
  int n_free() const { return n_free_; }
  int references(BlockId block) const { return references_[at(block)]; }

  // The free block that was released longest ago, with one reference. Only when n_free() > 0.
  BlockId acquire();
  // One more holder; a free block leaves the free list, its contents intact.
  void share(BlockId block);
  // One holder less; without any, the block is free and the last to be taken again.
  void release(BlockId block);

  // Recounts everything; check()s that the free list, the counters and the references agree.
  void audit() const;

 private:
  size_t at(BlockId block) const;
  void link_last(BlockId block);
  void unlink(BlockId block);

  // A ring of free blocks through an extra entry at n_blocks: after it comes the one to take next.
  std::vector<BlockId> next_{}, previous_{};
  std::vector<int32_t> references_{};
  int n_free_ = 0;
};

}  // namespace unisono::engine

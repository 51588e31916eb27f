#include "engine/block_pool.h"

#include "base/check.h"

namespace unisono::engine {

BlockPool::BlockPool(int n_blocks) {
  check(n_blocks >= 1, "a pool has at least one block");
  const auto n = static_cast<size_t>(n_blocks);
  references_.assign(n, 0);
  next_.assign(n + 1, n_blocks);
  previous_.assign(n + 1, n_blocks);
  for (BlockId block = 0; block < n_blocks; block++) link_last(block);
}

size_t BlockPool::at(BlockId block) const {
  check(block >= 0 && static_cast<size_t>(block) < references_.size(), "a block of this pool");
  return static_cast<size_t>(block);
}

void BlockPool::link_last(BlockId block) {
  const size_t ring = references_.size();
  const BlockId last = previous_[ring];
  next_[static_cast<size_t>(block)] = static_cast<BlockId>(ring);
  previous_[static_cast<size_t>(block)] = last;
  next_[static_cast<size_t>(last)] = block;
  previous_[ring] = block;
  n_free_++;
}

void BlockPool::unlink(BlockId block) {
  const BlockId before = previous_[static_cast<size_t>(block)], after = next_[static_cast<size_t>(block)];
  next_[static_cast<size_t>(before)] = after;
  previous_[static_cast<size_t>(after)] = before;
  n_free_--;
}

BlockId BlockPool::acquire() {
  check(n_free_ > 0, "a free block to take");
  const BlockId block = next_[references_.size()];
  share(block);
  return block;
}

void BlockPool::share(BlockId block) {
  if (references_[at(block)]++ == 0) unlink(block);
}

void BlockPool::release(BlockId block) {
  check(references_[at(block)] > 0, "a block is released as often as it was acquired");
  if (--references_[at(block)] == 0) link_last(block);
}

void BlockPool::audit() const {
  const auto ring = static_cast<BlockId>(references_.size());
  int linked = 0;
  for (BlockId block = next_[references_.size()], before = ring; block != ring; block = next_[at(block)]) {
    check(references_[at(block)] == 0, "a free block has no references");
    check(previous_[at(block)] == before, "the free list is linked both ways");
    check(++linked <= n_blocks(), "the free list ends");
    before = block;
  }
  int unreferenced = 0;
  for (const int32_t count : references_) {
    check(count >= 0, "no negative references");
    unreferenced += count == 0;
  }
  check(linked == n_free_ && unreferenced == n_free_, "every block without references is in the free list");
}

}  // namespace unisono::engine

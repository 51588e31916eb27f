// The blocks of layers that see only a window: each sequence holds those of the positions it still sees, gives back what
// left the window, and finds them again through the blocks of the other layers. Knows neither tokens nor the order of
// sequences.
#pragma once

#include <algorithm>
#include <span>
#include <vector>

#include "engine/block_pool.h"
#include "engine/sequence.h"
#include "model/arch.h"

namespace unisono::engine {

// Blocks are promised before they are taken: a sequence is let in, and grows, only while all promises can be kept at once,
// so that taking one never fails. A block that became full is known by the block in which the other layers keep the same
// positions ("its anchor"), whose tokens the prefix index has verified.
class WindowBlocks {
 public:
  // window: positions seen. anchors: blocks of the other layers. A step computes at most row_budget rows; fewer where the
  // pool is small. n_blocks at least least_blocks().
  WindowBlocks(int n_blocks, int n_anchors, int window, int row_budget);

  // Some layers of the model have a window, others not, and a sequence of this length leaves it: worth blocks of their own.
  static bool useful(const model::Hparams& hparams, int max_context);
  // The most blocks a sequence holds between two steps.
  static int most_held(int window) { return (window + 2 * model::kBlockTokens - 4) / model::kBlockTokens + 1; }
  // One sequence and a step of one block's rows.
  static int least_blocks(int window) { return most_held(window) + 1; }
  // How many go well with so many blocks of the other layers: as sequences of max_context need them, but for no longer ones
  // than four times the most they hold; and never fewer than one sequence and a step of row_budget.
  static int good_number(int n_blocks, int window, int max_context, int row_budget);

  int n_blocks() const { return pool_.n_blocks(); }
  int n_free() const { return pool_.n_free(); }
  int row_budget() const { return row_budget_; }
  int first_seen(int position) const { return std::max(0, position - window_ + 1) / model::kBlockTokens; }

  // Of the blocks that a prefix was found in, how many can be used: those up to which all that is seen is here, too.
  size_t usable(std::span<const BlockId> anchors) const;
  // Beside the others, and nobody else: the promise for all known tokens can be kept, and one more block for each other.
  bool fits(const Sequence& sequence, std::span<Sequence* const> others) const;
  // Makes that promise, and takes the blocks seen after these anchors, all of them usable.
  void start(Sequence& sequence, std::span<const BlockId> anchors);
  // Makes the promise for all known tokens, one more than before; false: somebody must give way first.
  bool grow(Sequence& sequence);
  // Takes blocks for the next n_rows. Their step is committed before others are taken.
  void cover(Sequence& sequence, int n_rows);
  // The sequence's block i is full and belongs to this anchor, as from now on does all that is computed of the same text.
  void enter(Sequence& sequence, size_t i, BlockId anchor);
  // The anchor is about to be overwritten.
  void forget(BlockId anchor);
  // Gives back what left the window.
  void pass(Sequence& sequence);
  // Gives back everything.
  void release(Sequence& sequence);

  // Recounts everything, for sequences that hold blocks; check()s that all agree.
  void audit(std::span<Sequence* const> sequences, bool entered) const;

 private:
  static constexpr BlockId kNone = -1;
  int promise_for(const Sequence& sequence) const { return std::min(blocks_for(sequence.n_tokens), most_held(window_)); }
  BlockId take();
  void audit_sequence(const Sequence& sequence, bool entered) const;

  BlockPool pool_;
  const int window_;
  const int row_budget_;
  const int most_promised_;  // the rest is for a step's rows
  int n_promised_ = 0;
  std::vector<BlockId> of_anchor_;  // [anchors] or none
  std::vector<BlockId> anchor_of_;  // [blocks] or none
};

}  // namespace unisono::engine

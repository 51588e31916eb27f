#include "engine/window_blocks.h"

#include <algorithm>

#include "base/check.h"

namespace unisono::engine {

namespace {

constexpr int kLongest = 4;  // times a window's blocks: the length up to which good_number() follows the context

}  // namespace

WindowBlocks::WindowBlocks(int n_blocks, int n_anchors, int window, int row_budget)
    : pool_(n_blocks),
      window_(window),
      row_budget_(std::min(row_budget, (n_blocks - most_held(window)) * model::kBlockTokens)),
      most_promised_(n_blocks - row_budget_ / model::kBlockTokens),
      of_anchor_(static_cast<size_t>(n_anchors), kNone),
      anchor_of_(static_cast<size_t>(n_blocks), kNone) {
  check(window >= 1 && n_blocks >= least_blocks(window), "window blocks for one sequence");
}

bool WindowBlocks::useful(const model::Hparams& h, int max_context) {
  const auto windowed = std::ranges::count_if(h.windowed, [](uint8_t has) { return has != 0; });
  return h.window > 0 && h.window < max_context && windowed > 0 && windowed < h.n_layers;
}

int WindowBlocks::good_number(int n_blocks, int window, int max_context, int row_budget) {
  const int64_t held = most_held(window), longest = std::clamp<int64_t>(blocks_for(max_context), held, kLongest * held);
  return std::max(static_cast<int>(n_blocks * held / longest), static_cast<int>(held) + blocks_for(row_budget));
}

size_t WindowBlocks::usable(std::span<const BlockId> anchors) const {
  size_t best = 0, here = 0;  // here: how many are, without a gap, up to the one at hand
  for (size_t i = 0; i < anchors.size(); i++) {
    here = of_anchor_[static_cast<size_t>(anchors[i])] == kNone ? 0 : here + 1;
    const size_t next = i + 1, first = static_cast<size_t>(first_seen(static_cast<int>(next) * model::kBlockTokens));
    if (here >= next - first) best = next;
  }
  return best;
}

bool WindowBlocks::fits(const Sequence& sequence, std::span<Sequence* const> others) const {
  int promised = promise_for(sequence);
  // One that holds less than the most may soon need one more.
  for (const Sequence* other : others)
    promised += other->window_promise + (other->window_promise < most_held(window_) ? 1 : 0);
  return promised <= most_promised_;
}

void WindowBlocks::start(Sequence& sequence, std::span<const BlockId> anchors) {
  sequence.window_promise = promise_for(sequence);
  n_promised_ += sequence.window_promise;
  sequence.n_passed = first_seen(static_cast<int>(anchors.size()) * model::kBlockTokens);
  sequence.window_blocks.assign(static_cast<size_t>(sequence.n_passed), kNone);
  for (const BlockId anchor : anchors.subspan(static_cast<size_t>(sequence.n_passed))) {
    const BlockId block = of_anchor_[static_cast<size_t>(anchor)];
    pool_.share(block);
    sequence.window_blocks.push_back(block);
  }
}

bool WindowBlocks::grow(Sequence& sequence) {
  const int wanted = promise_for(sequence);
  if (n_promised_ + wanted - sequence.window_promise > most_promised_) return false;
  n_promised_ += wanted - sequence.window_promise;
  sequence.window_promise = wanted;
  return true;
}

// What the block held can't be found from here on.
BlockId WindowBlocks::take() {
  const BlockId block = pool_.acquire();
  BlockId& anchor = anchor_of_[static_cast<size_t>(block)];
  if (anchor != kNone) of_anchor_[static_cast<size_t>(anchor)] = kNone;
  anchor = kNone;
  return block;
}

void WindowBlocks::cover(Sequence& sequence, int n_rows) {
  const auto n = static_cast<size_t>(blocks_for(sequence.n_computed + n_rows));
  while (sequence.window_blocks.size() < n) sequence.window_blocks.push_back(take());
}

void WindowBlocks::enter(Sequence& sequence, size_t i, BlockId anchor) {
  BlockId& mine = sequence.window_blocks[i];
  BlockId& entered = of_anchor_[static_cast<size_t>(anchor)];
  if (entered == kNone) {
    check(anchor_of_[static_cast<size_t>(mine)] == kNone, "a block is entered once");
    entered = mine;
    anchor_of_[static_cast<size_t>(mine)] = anchor;
  } else if (entered != mine) {
    pool_.share(entered);
    pool_.release(mine);
    mine = entered;
  }
}

void WindowBlocks::forget(BlockId anchor) {
  BlockId& block = of_anchor_[static_cast<size_t>(anchor)];
  if (block != kNone) anchor_of_[static_cast<size_t>(block)] = kNone;
  block = kNone;
}

void WindowBlocks::pass(Sequence& sequence) {
  for (const int first = first_seen(sequence.n_computed); sequence.n_passed < first; sequence.n_passed++) {
    BlockId& block = sequence.window_blocks[static_cast<size_t>(sequence.n_passed)];
    pool_.release(block);
    block = kNone;
  }
}

// From the end, as the other layers' are.
void WindowBlocks::release(Sequence& sequence) {
  for (; sequence.window_blocks.size() > static_cast<size_t>(sequence.n_passed); sequence.window_blocks.pop_back())
    pool_.release(sequence.window_blocks.back());
  sequence.window_blocks.clear();
  n_promised_ -= sequence.window_promise;
  sequence.window_promise = sequence.n_passed = 0;
}

void WindowBlocks::audit_sequence(const Sequence& s, bool entered) const {
  check(s.n_passed == first_seen(s.n_computed), "what left the window is given back");
  check(s.window_blocks.size() >= static_cast<size_t>(blocks_for(s.n_computed)), "what is seen has blocks");
  check(s.window_promise == std::min(static_cast<int>(s.blocks.size()), most_held(window_)),
        "as many are promised as are needed");
  for (size_t i = 0; i < s.window_blocks.size(); i++) {
    const BlockId block = s.window_blocks[i];
    if (i < static_cast<size_t>(s.n_passed)) {
      check(block == kNone, "who looks behind the window finds nothing");
    } else if (entered && i < static_cast<size_t>(s.n_computed / model::kBlockTokens)) {
      check(of_anchor_[static_cast<size_t>(s.blocks[i])] == block, "a full block is known by its anchor");
    } else {
      check(anchor_of_[static_cast<size_t>(block)] == kNone && pool_.references(block) == 1,
            "a window block that is written to has one holder");
    }
  }
}

void WindowBlocks::audit(std::span<Sequence* const> sequences, bool entered) const {
  pool_.audit();
  std::vector<int> held(anchor_of_.size(), 0);
  int promised = 0;
  for (const Sequence* s : sequences) {
    promised += s->window_promise;
    audit_sequence(*s, entered);
    for (auto i = static_cast<size_t>(s->n_passed); i < s->window_blocks.size(); i++)
      held[static_cast<size_t>(s->window_blocks[i])]++;
  }
  check(promised == n_promised_ && promised <= most_promised_, "all promises can be kept");
  for (BlockId block = 0; block < n_blocks(); block++) {
    const BlockId anchor = anchor_of_[static_cast<size_t>(block)];
    check(pool_.references(block) == held[static_cast<size_t>(block)], "a window block is held by the tables that list it");
    check(anchor == kNone || of_anchor_[static_cast<size_t>(anchor)] == block, "a block and its anchor know each other");
  }
  for (size_t anchor = 0; anchor < of_anchor_.size(); anchor++)
    check(
        of_anchor_[anchor] == kNone || anchor_of_[static_cast<size_t>(of_anchor_[anchor])] == static_cast<BlockId>(anchor),
        "an anchor and its block know each other");
}

}  // namespace unisono::engine

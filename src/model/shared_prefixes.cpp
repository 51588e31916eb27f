#include "model/shared_prefixes.h"

#include <algorithm>
#include <numeric>

#include "kernels/ops.h"

namespace unisono::model {

namespace {

using kernels::kSplit;
constexpr int kSplitBlocks = kSplit / kBlockTokens;

// Leading splits that all rows of the sequence have behind them: what it can share.
int whole_splits(const BatchSequence& seq) { return (seq.first_position + 1) / kSplit; }

int common_splits(const BatchSequence& a, const BatchSequence& b) {
  const auto most = static_cast<std::ptrdiff_t>(std::min(whole_splits(a), whole_splits(b))) * kSplitBlocks;
  const auto differs = std::mismatch(a.block_table.begin(), a.block_table.begin() + most, b.block_table.begin()).first;
  return static_cast<int>((differs - a.block_table.begin()) / kSplitBlocks);
}

}  // namespace

// Sorted by the last block of each split, those with more splits first.
void find_shared(const Batch& batch, SharedPrefixes& prefixes) {
  const size_t n = batch.sequences.size();
  prefixes.order.resize(n);
  std::iota(prefixes.order.begin(), prefixes.order.end(), 0);
  prefixes.common.assign(n, 0);
  prefixes.shared.assign(n, 0);
  std::sort(prefixes.order.begin(), prefixes.order.end(), [&](int x, int y) {
    const BatchSequence& a = batch.sequences[static_cast<size_t>(x)];
    const BatchSequence& b = batch.sequences[static_cast<size_t>(y)];
    const int in_a = whole_splits(a), in_b = whole_splits(b);
    for (int s = 0; s < std::min(in_a, in_b); s++) {
      const auto at = static_cast<size_t>((s + 1) * kSplitBlocks - 1);
      if (a.block_table[at] != b.block_table[at]) return a.block_table[at] < b.block_table[at];
    }
    return in_a != in_b ? in_a > in_b : x < y;
  });
  for (size_t i = 1; i < n; i++) {
    const auto x = static_cast<size_t>(prefixes.order[i - 1]), y = static_cast<size_t>(prefixes.order[i]);
    prefixes.common[i] = common_splits(batch.sequences[x], batch.sequences[y]);
    prefixes.shared[x] = std::max(prefixes.shared[x], prefixes.common[i]);
    prefixes.shared[y] = std::max(prefixes.shared[y], prefixes.common[i]);
  }
}

int64_t SharedPrefixes::saved_positions() const {
  return std::accumulate(common.begin(), common.end(), int64_t{0}) * kSplit;
}

}  // namespace unisono::model

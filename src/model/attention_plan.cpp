#include "model/attention_plan.h"

#include <algorithm>
#include <numeric>

#include "kernels/ops.h"

namespace unisono::model {

namespace {

using kernels::kSplit;
constexpr int kSplitBlocks = kSplit / kBlockTokens;
constexpr size_t kMostStateBytes = size_t{64} << 20;
constexpr int kJobsEach = 8;  // jobs a worker has at least, so that none waits long for the last

int first_split(const Tile& tile, int window) {
  return std::max(0, tile.first_position - window + 1) / kSplit;
}
int last_split(const Tile& tile) { return (tile.first_position + tile.tokens - 1) / kSplit + 1; }

// Leading splits that all rows of the sequence have behind them: what it can share.
int whole_splits(const BatchSequence& seq) { return (seq.first_position + 1) / kSplit; }

int common_splits(const BatchSequence& a, const BatchSequence& b) {
  const auto most = static_cast<std::ptrdiff_t>(std::min(whole_splits(a), whole_splits(b))) * kSplitBlocks;
  const auto differs = std::mismatch(a.block_table.begin(), a.block_table.begin() + most, b.block_table.begin()).first;
  return static_cast<int>((differs - a.block_table.begin()) / kSplitBlocks);
}

// Puts sequences with the same leading blocks side by side: by the last block of each split, those with more splits first.
// plan.common[i]: leading splits that sequences order[i - 1] and order[i] share; plan.shared[sequence]: with any other.
void find_shared(const Batch& batch, AttentionPlan& plan) {
  const size_t n = batch.sequences.size();
  plan.order.resize(n);
  std::iota(plan.order.begin(), plan.order.end(), 0);
  plan.common.assign(n, 0);
  plan.shared.assign(n, 0);
  std::sort(plan.order.begin(), plan.order.end(), [&](int x, int y) {
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
    const auto x = static_cast<size_t>(plan.order[i - 1]), y = static_cast<size_t>(plan.order[i]);
    plan.common[i] = common_splits(batch.sequences[x], batch.sequences[y]);
    plan.shared[x] = std::max(plan.shared[x], plan.common[i]);
    plan.shared[y] = std::max(plan.shared[y], plan.common[i]);
  }
}

// A job for each kv head; `most_rows` rows at a time.
void add_jobs(AttentionPlan& plan, size_t first_row, int most_rows, int n_kv_heads, int begin, int end) {
  const int n = static_cast<int>(plan.rows.size() - first_row);
  for (int kv_head = 0; kv_head < n_kv_heads; kv_head++)
    for (int r = 0; r < n; r += most_rows)
      plan.jobs.push_back({static_cast<int>(first_row) + r, std::min(most_rows, n - r), kv_head, begin, end});
}

void add_shared_jobs(const Batch& batch, const Deal& deal, int n_kv_heads, int most_rows, AttentionPlan& plan) {
  const int splits = plan.shared.empty() ? 0 : *std::max_element(plan.shared.begin(), plan.shared.end());
  for (int split = 0; split < splits; split++)
    for (size_t i = 0, end = 0; i < plan.order.size(); i = end) {
      for (end = i + 1; end < plan.order.size() && plan.common[end] > split;) end++;
      if (end - i < 2) continue;
      const size_t first = plan.rows.size();
      for (size_t j = i; j < end; j++) {
        const BatchSequence& seq = batch.sequences[static_cast<size_t>(plan.order[j])];
        for (int r = 0; r < seq.n_rows; r++) plan.rows.push_back(deal.buffer_row[static_cast<size_t>(seq.first_row + r)]);
      }
      add_jobs(plan, first, most_rows, n_kv_heads, split, split + 1);
    }
}

}  // namespace

void make_plan(const Batch& batch, const Deal& deal, int workers, int n_kv_heads, int group, int window, size_t state_bytes,
               AttentionPlan& plan) {
  plan.jobs.clear();
  plan.rows.clear();
  plan.apart = 0;
  int most = 0;
  for (const Tile& tile : deal.tiles) most = std::max(most, last_split(tile));
  const bool room = static_cast<size_t>(deal.rows()) * static_cast<size_t>(most) * state_bytes <= kMostStateBytes;
  if (room && window == 0) {
    find_shared(batch, plan);
    add_shared_jobs(batch, deal, n_kv_heads, kernels::kMaxQueries / group, plan);
  } else {
    plan.shared.assign(batch.sequences.size(), 0);
  }
  const bool shares = !plan.jobs.empty();
  const auto first_own = [&](const Tile& tile) {
    return window > 0 ? first_split(tile, window) : plan.shared[static_cast<size_t>(tile.sequence)];
  };

  // What each tile has for itself. With few jobs, one tile's context is cut among the workers.
  int64_t units = 0;
  for (const Tile& tile : deal.tiles) units += (last_split(tile) - first_own(tile)) * n_kv_heads;
  const int whole_jobs = static_cast<int>(deal.tiles.size()) * n_kv_heads;
  const bool cut = room && workers > 1 && most > 1 && whole_jobs < kJobsEach * workers;
  const int some = cut ? static_cast<int>(std::max<int64_t>(1, units / (kJobsEach * workers))) : most;
  for (const Tile& tile : deal.tiles) {
    const size_t first = plan.rows.size();
    for (int r = 0; r < tile.tokens; r++) plan.rows.push_back(tile.row + r);
    for (int s = first_own(tile), end = last_split(tile); s < end; s += some)
      add_jobs(plan, first, tile.tokens, n_kv_heads, s, std::min(s + some, end));
  }
  if (cut || shares) plan.apart = most;
}

}  // namespace unisono::model

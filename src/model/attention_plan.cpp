#include "model/attention_plan.h"

#include <algorithm>

#include "kernels/ops.h"

namespace unisono::model {

namespace {

using kernels::kSplit;
constexpr size_t kMostStateBytes = size_t{64} << 20;
constexpr int kJobsEach = 8;  // jobs a worker has at least, so that none waits long for the last

int first_split(const Tile& tile, int window) {
  return std::max(0, tile.first_position - window + 1) / kSplit;
}
int last_split(const Tile& tile) { return (tile.first_position + tile.tokens - 1) / kSplit + 1; }

// A job for each kv head; `most_rows` rows at a time.
void add_jobs(AttentionPlan& plan, size_t first_row, int most_rows, int n_kv_heads, int begin, int end) {
  const int n = static_cast<int>(plan.rows.size() - first_row);
  for (int kv_head = 0; kv_head < n_kv_heads; kv_head++)
    for (int r = 0; r < n; r += most_rows)
      plan.jobs.push_back({static_cast<int>(first_row) + r, std::min(most_rows, n - r), kv_head, begin, end});
}

void add_shared_jobs(const Batch& batch, const SharedPrefixes& prefixes, const Deal& deal, int n_kv_heads, int most_rows,
                     AttentionPlan& plan) {
  const int splits = prefixes.shared.empty() ? 0 : *std::max_element(prefixes.shared.begin(), prefixes.shared.end());
  for (int split = 0; split < splits; split++)
    for (size_t i = 0, end = 0; i < prefixes.order.size(); i = end) {
      for (end = i + 1; end < prefixes.order.size() && prefixes.common[end] > split;) end++;
      if (end - i < 2) continue;
      const size_t first = plan.rows.size();
      for (size_t j = i; j < end; j++) {
        const BatchSequence& seq = batch.sequences[static_cast<size_t>(prefixes.order[j])];
        for (int r = 0; r < seq.n_rows; r++) plan.rows.push_back(deal.buffer_row[static_cast<size_t>(seq.first_row + r)]);
      }
      add_jobs(plan, first, most_rows, n_kv_heads, split, split + 1);
    }
}

}  // namespace

void make_plan(const Batch& batch, const SharedPrefixes& prefixes, const Deal& deal, int workers, int n_kv_heads, int group,
               int window, size_t state_bytes, AttentionPlan& plan) {
  plan.jobs.clear();
  plan.rows.clear();
  plan.apart = 0;
  int most = 0;
  for (const Tile& tile : deal.tiles) most = std::max(most, last_split(tile));
  const bool room = static_cast<size_t>(deal.rows()) * static_cast<size_t>(most) * state_bytes <= kMostStateBytes;
  const bool may_share = room && window == 0;
  if (may_share) add_shared_jobs(batch, prefixes, deal, n_kv_heads, kernels::kMaxQueries / group, plan);
  const bool shares = !plan.jobs.empty();
  const auto first_own = [&](const Tile& tile) {
    if (window > 0) return first_split(tile, window);
    return may_share ? prefixes.shared[static_cast<size_t>(tile.sequence)] : 0;
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

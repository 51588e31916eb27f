#include "model/step.h"

#include <algorithm>

#include "base/check.h"
#include "model/rope.h"

namespace unisono::model {

using kernels::Bf16Block;
using kernels::kLanes;
using kernels::QuantBlock;

namespace {
// Where workers keep their rows, each reads all weights: of layers as small as this the last-level cache still has what another
// worker read, and meeting less often is worth it for fewer rows.
constexpr size_t kSmallLayer = size_t{8} << 20;
// So few rows each worker prepares for itself: that takes less time than to meet.
constexpr int kFewRows = 2;

int padded(int n) { return (n + kLanes - 1) / kLanes * kLanes; }
}  // namespace

Step::Step(const Arch& arch, const Hparams& hparams, const Weights& weights, const kernels::Ops& ops)
    : arch_(arch), h_(hparams), w_(weights), ops_(ops), head_(hparams, weights, ops), experts_(arch, hparams, weights, ops) {
  frequencies_ = rope_frequencies(h_.rope_dims, h_.rope_base, h_.rope_scale, w_.rope_factors);
  local_frequencies_ = rope_frequencies(h_.rope_dims, h_.local_rope_base, 1, {});
  for (const Layer& layer : w_.layers) {
    qkv_columns_ = std::max(qkv_columns_, layer.qkv.columns());
    gate_columns_ = std::max(gate_columns_, layer.gate_up.columns());
  }
  d_columns_ = padded(h_.d_model);
  deal_terms_.attention_unit = w_.attention_unit(h_, 0);  // experts are dealt apart from the rows
  shared_bytes_ = w_.bytes();
  for (const Layer& l : w_.layers)
    for (const Expert& e : l.experts) shared_bytes_ -= e.gate_up.bytes() + e.down.bytes();
  const int group = h_.n_heads / h_.n_kv_heads;
  check(group <= kernels::kMaxQueries && h_.head_dim <= kernels::kMaxHeadDim, "the loader refuses larger heads and groups");
  deal_terms_.tile_tokens = std::clamp(kernels::kMaxQueries / group, 1, 20);
  const size_t layer_bytes = (shared_bytes_ - w_.head.bytes()) / static_cast<size_t>(h_.n_layers);
  deal_terms_.rows_to_keep = layer_bytes <= kSmallLayer ? 16 : 32;
  for (const Layer& l : w_.layers)
    most_blocks_ = std::max({most_blocks_, l.qkv.k() / kernels::kBlock, l.attn_output.k() / kernels::kBlock, l.ffn_down.k() / kernels::kBlock});
  next_job_ = std::make_unique<std::atomic<int>[]>(static_cast<size_t>(h_.n_layers));
}

void Step::reserve(int rows) {
  auto needs = [&](Activations kind) {
    bool found = false;
    each_linear(w_, [&](const Linear& linear) { found = found || linear.needs(kind); });
    return found;
  };
  auto floats = [](Buffer& buffer, int64_t n) {
    if (static_cast<int64_t>(buffer.size()) < n * 4) buffer = Buffer(static_cast<size_t>(n) * 4);
  };
  if (rows > capacity_) {
    capacity_ = std::max(rows, 64);
    floats(x_, int64_t{capacity_} * d_columns_);
    floats(y_, int64_t{capacity_} * d_columns_);
    floats(qkv_, int64_t{capacity_} * qkv_columns_);
    floats(attended_, int64_t{capacity_} * h_.n_heads * h_.head_dim);
    floats(gate_up_, int64_t{capacity_} * gate_columns_);
    if (needs(Activations::int8)) floats(int8_, int64_t{capacity_} * most_blocks_ * static_cast<int64_t>(sizeof(QuantBlock)) / 4);
    if (needs(Activations::bf16)) floats(bf16_, int64_t{capacity_} * most_blocks_ * static_cast<int64_t>(sizeof(Bf16Block)) / 4);
    floats(angles_, int64_t{capacity_} * h_.rope_dims * 2);
  }
  if (few_) {
    floats(normed_, int64_t{rows} * d_columns_);
    floats(gated_, int64_t{rows} * gate_columns_);
  }
}

// [row][global cosines, sines, local cosines, sines][rope_dims / 2]
void Step::find_angles(const Batch& batch) {
  const size_t half = static_cast<size_t>(h_.rope_dims / 2);
  for (const BatchSequence& seq : batch.sequences)
    for (int i = 0; i < seq.n_rows; i++) {
      const size_t row = static_cast<size_t>(all_.deal.buffer_row[static_cast<size_t>(seq.first_row + i)]);
      float* at = angles_.as<float>().data() + row * 4 * half;
      rope_angles(seq.first_position + i, frequencies_, at, at + half);
      if (h_.window > 0) rope_angles(seq.first_position + i, local_frequencies_, at + 2 * half, at + 3 * half);
    }
}

void Step::prepare(Stage& stage, const Batch& batch, const KvStore& kv, const ThreadTeam& team) {
  const int workers = team.size();
  const bool window_blocks = kv.n_window_blocks() > 0;
  stage.batch = &batch;
  find_shared(batch, stage.prefixes);
  make_deal(batch, workers, deal_terms_, stage.prefixes.saved_positions(), stage.deal);
  plan_ahead(stage, kv, team);
  if (stage.deal.by_rows) return;
  const int group = h_.n_heads / h_.n_kv_heads;
  const size_t state_bytes = static_cast<size_t>(h_.n_heads) * kernels::attention_state_floats(h_.head_dim) * sizeof(float);
  make_plan(batch, stage.prefixes, stage.deal, workers, h_.n_kv_heads, group, 0, state_bytes, stage.plan);
  if (window_blocks)
    make_plan(batch, stage.prefixes, stage.deal, workers, h_.n_kv_heads, group, h_.window, state_bytes, stage.window_plan);
  const int apart = std::max(stage.plan.apart, window_blocks ? stage.window_plan.apart : 0);
  const size_t bytes = static_cast<size_t>(stage.deal.rows()) * static_cast<size_t>(apart) * state_bytes;
  if (states_.size() < bytes) states_ = Buffer(bytes);
}

// Nothing where it could not be fetched: few rows leave memory no time. Nor where any worker may attend to any block, which
// is of no use to one with another cache; workers that keep their rows attend to their own.
void Step::plan_ahead(Stage& stage, const KvStore& kv, const ThreadTeam& team) {
  for (KvAhead* ahead : {&stage.ahead, &stage.window_ahead}) {
    ahead->blocks.clear();
    ahead->blocks.reserve(static_cast<size_t>(kv.n_blocks() + kv.n_window_blocks()));
  }
  const SharedCache& cache = team.cache();
  if (cache.bytes == 0 || all_.deal.rows() <= kFewRows || (!stage.deal.by_rows && cache.threads < team.size())) return;
  plan_kv_ahead(*stage.batch, stage.prefixes, stage.deal, team.size(), 0, false, stage.ahead);
  if (h_.window > 0)
    plan_kv_ahead(*stage.batch, stage.prefixes, stage.deal, team.size(), h_.window, kv.n_window_blocks() > 0, stage.window_ahead);
}

void Step::prepare_wanted(const Batch& batch, const KvStore& kv, const ThreadTeam& team) {
  const Batch& wanted = wanted_rows_.of(batch);
  prepare(wanted_, wanted, kv, team);
  wanted_.where.clear();
  for (const int row : wanted_.deal.batch_row)
    wanted_.where.push_back(all_.deal.buffer_row[static_cast<size_t>(batch.logits_rows[static_cast<size_t>(row)])]);
}

std::span<const float> Step::run(const Batch& batch, KvStore& kv, ThreadTeam& team) {
  prepare(all_, batch, kv, team);
  const int rows = all_.deal.rows(), outputs = static_cast<int>(batch.logits_rows.size());
  few_ = !all_.deal.by_rows && team.size() > 1 && rows <= kFewRows && outputs <= rows;
  narrows_ = !few_ && outputs < rows;
  if (narrows_) prepare_wanted(batch, kv, team);
  reserve(few_ ? rows * team.size() : rows);
  head_.reserve(outputs, team.size());
  experts_.begin();
  experts_.reserve(rows, team.size(), way(all_));
  if (narrows_) experts_.reserve(wanted_.deal.rows(), team.size(), way(wanted_));
  find_angles(batch);
  for (int i = 0; i < h_.n_layers; i++) next_job_[static_cast<size_t>(i)] = 0;
  panel_deal_.reset(team.size());
  team.run([&](Worker& worker) { work(kv, team.cache(), worker); });
  return head_.logits(outputs);
}

}  // namespace unisono::model

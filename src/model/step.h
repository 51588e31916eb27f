// One step's buffers and the forward pass over them. Model owns one; see model.h for what a step promises.
#pragma once

#include <atomic>
#include <memory>
#include <vector>

#include "model/attention_plan.h"
#include "model/deal.h"
#include "model/experts.h"
#include "model/head.h"
#include "model/kv_ahead.h"
#include "model/model.h"
#include "model/panel_deal.h"
#include "model/shared_prefixes.h"
#include "model/wanted_rows.h"
#include "model/weights.h"

namespace unisono::model {

class Step {
 public:
  Step(const Arch& arch, const Hparams& hparams, const Weights& weights, const kernels::Ops& ops);

  std::span<const float> run(const Batch& batch, KvStore& kv, ThreadTeam& team);

  // Of the weights that the last run read: all but those of experts that no row chose.
  size_t weight_bytes_read() const { return shared_bytes_ + experts_.bytes_read(); }

 private:
  // One worker's way through the step (step_work.cpp).
  class Part;
  void work(KvStore& kv, const SharedCache& cache, Worker& worker);

  // Rows that go through some layers together, and how that is dealt.
  struct Stage {
    const Batch* batch = nullptr;
    SharedPrefixes prefixes{};
    Deal deal{};
    AttentionPlan plan{}, window_plan{};  // the second of layers with window blocks
    KvAhead ahead{}, window_ahead{};      // the second of layers with a window
    std::vector<int> where{};             // [rows] where x and the queries of a row lie; empty: in its own place

    int at(int row) const { return where.empty() ? row : where[static_cast<size_t>(row)]; }
  };

  void prepare(Stage& stage, const Batch& batch, const KvStore& kv, const ThreadTeam& team);
  void plan_ahead(Stage& stage, const KvStore& kv, const ThreadTeam& team);
  void prepare_wanted(const Batch& batch, const KvStore& kv, const ThreadTeam& team);
  Experts::Way way(const Stage& stage) const {
    return stage.deal.by_rows ? Experts::Way::whole : few_ ? Experts::Way::each : Experts::Way::panels;
  }
  void reserve(int rows);
  void find_angles(const Batch& batch);

  const Arch& arch_;
  const Hparams& h_;
  const Weights& w_;
  const kernels::Ops& ops_;
  std::vector<float> frequencies_{}, local_frequencies_{};
  int qkv_columns_ = 0, gate_columns_ = 0, d_columns_ = 0;
  DealTerms deal_terms_{};
  int most_blocks_ = 0;  // of a row of int8 or bf16 activations

  // All rows, up to the keys and values of the last layer; then those whose logits are wanted, if that is not all.
  Stage all_{}, wanted_{};
  WantedRows wanted_rows_{};
  bool narrows_ = false;
  bool few_ = false;  // each worker prepares all rows for itself, and only products and attention are shared
  PanelDeal panel_deal_{};
  Head head_;
  Experts experts_;
  size_t shared_bytes_ = 0;  // of weights that every row goes through
  std::unique_ptr<std::atomic<int>[]> next_job_{};  // [n_layers]

  Buffer x_{}, y_{}, qkv_{}, attended_{}, gate_up_{}, normed_{}, gated_{}, int8_{}, bf16_{}, angles_{}, states_{};
  int capacity_ = 0;
};

}  // namespace unisono::model

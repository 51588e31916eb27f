// The output head: the last norm, and the logits of the rows that want them. Owns what that takes besides the rows.
#pragma once

#include <cstdint>
#include <span>

#include "base/buffer.h"
#include "base/thread_team.h"
#include "kernels/ops.h"
#include "model/arch.h"
#include "model/panel_deal.h"
#include "model/weights.h"

namespace unisono::model {

// With int8 activations the head's input is rounded twice, the second time what the first rounded off: a rounding here goes
// straight into every logit. The second product is added where probability is: to the pairs of panels with the 32 or so
// best tokens by the first one. That takes off most of what adding all of it would, at a fraction of its time. A row's
// choice depends on that row's logits only.
class Head {
 public:
  Head(const Hparams& hparams, const Weights& weights, const kernels::Ops& ops);

  // Room for so many rows. Keeps what it has.
  void reserve(int rows, int workers);

  // One worker's part in the logits of `rows` rows; row i's last hidden state is hidden(i). All workers call it, and have
  // met before; the logits are there when all have returned.
  template <class Hidden>
  void run(Worker& worker, PanelDeal::Hand& hand, int rows, Hidden hidden) {
    if (rows == 0) return;
    const auto mine = worker.share(rows);
    for (int64_t r = mine.begin; r < mine.end; r++) prepare(static_cast<int>(r), rows, hidden(static_cast<int>(r)));
    worker.barrier();
    multiply(worker, hand, rows);
  }

  // [rows][vocabulary], until the next run.
  std::span<const float> logits(int rows);

 private:
  void prepare(int row, int rows, const float* hidden);
  void multiply(Worker& worker, PanelDeal::Hand& hand, int rows);
  void note_peaks(int rows, int panel, int end);
  void refine(Worker& worker, PanelDeal::Hand& hand, int rows);
  int gather(int pair, int rows, int worker);
  void add_second(int pair, int row, int second);
  float* row(int i) { return logits_.as<float>().data() + static_cast<int64_t>(i) * linear_.columns(); }
  float* peaks(int i) { return peaks_.as<float>().data() + static_cast<int64_t>(i) * pairs_; }

  const Hparams& h_;
  const std::vector<float>& norm_;
  const Linear& linear_;
  const kernels::Ops& ops_;
  bool twice_ = false;  // int8 activations
  int64_t blocks_ = 0;  // of a row of activations
  int pairs_ = 0;       // of panels

  // [rows] of normed input; what is rounded of it: all first roundings, then all second ones. Logits of both.
  Buffer normed_{}, int8_{}, bf16_{}, logits_{}, compact_{};
  Buffer peaks_{}, thresholds_{};   // [rows][pairs], [rows]
  Buffer gathered_{}, wanting_{};   // [workers][rows] second roundings, and whose they are
  int capacity_ = 0, workers_ = 0;  // rows
};

// What a pair's best logit must reach: near the 32nd best of `peaks`, and within 16 of the best.
float refining_threshold(std::span<const float> peaks);

}  // namespace unisono::model

// A mixture of experts: which experts a row goes to, and each expert's product with all rows that chose it. Owns what that
// takes besides the rows.
#pragma once

#include <atomic>
#include <memory>
#include <vector>

#include "base/buffer.h"
#include "base/thread_team.h"
#include "kernels/ops.h"
#include "model/arch.h"
#include "model/panel_deal.h"
#include "model/weights.h"

namespace unisono::model {

// How kernels call a family's activation: of the experts' gates, and of a layer without experts.
inline kernels::GateKind gate_kind(Activation a) {
  return a == Activation::silu ? kernels::GateKind::silu : kernels::GateKind::gelu_tanh;
}

// A row's chosen experts are those with the largest soft-max of its scores over all experts, of equal ones the first; what
// they give is added up from zero in ascending order of the experts, times their weights, as Hugging Face transformers
// does. Last comes the expert that all rows share, where there is one, at the sigmoid of its score. Scores are products in
// f32, and sums run in fixed orders: every instruction set makes the same choice with the same weights, and a row's result
// depends on that row only.
class Experts {
 public:
  // How workers share the work, as step.h's deal has it.
  enum class Way : uint8_t {
    each,    // every worker chooses and gates for all rows; panels of the products are dealt
    panels,  // every worker chooses and gates for some rows; panels of the products are dealt
    whole,   // whole experts are dealt, with some tens of their rows
  };
  // The rows of a layer. A row's choice is kept at its own number, of which each worker has `rows` where it chooses for
  // all, from first_own on.
  struct Rows {
    Way way = Way::each;
    int rows = 0;
    int first_own = 0;
    const float* in = nullptr;  // [rows][stride], what the experts read: of the worker's own
    int64_t stride = 0;
  };

  Experts(const Arch& arch, const Hparams& hparams, const Weights& weights, const kernels::Ops& ops);

  // Room for layers of so many rows. Keeps what it has.
  void reserve(int rows, int workers, Way way);
  // Before a step: nothing done yet.
  void begin();

  // The router's product with a row: [score_columns].
  float* scores(int row) { return scores_.as<float>().data() + int64_t{row} * score_columns_; }
  int score_columns() const { return score_columns_; }
  // The row's experts by its scores, and its input `in` [d_model] as the experts of `layer` read it.
  void choose(int worker, int own, const float* scores, const float* in, const Layer& layer);
  // One worker's part in what the layer's experts make of all rows. All call it, and have met since they chose unless each
  // did for itself; they meet at its end. index: the layer's. then: what this worker multiplies next.
  void run(Worker& worker, PanelDeal::Hand& hand, const Layer& layer, int index, const Rows& rows, const Linear& then);
  // After it: y[d_model] = the sum for a row, whose own number is `own`.
  void sum(int worker, int row, int own, float* y) const;

  // Of the experts that rows of this step went to.
  size_t bytes_read() const { return bytes_read_; }

 private:
  // Consecutive places of one expert that are multiplied together.
  struct Unit {
    int expert = 0;
    int first = 0, rows = 0;
  };
  // One worker's view of who goes where. A place is a row at one of its experts; places stand in order of the experts, that
  // which all rows share last, then of the rows.
  struct Group {
    std::vector<Unit> units{};
    int chosen_units = 0;                // before those of the shared expert
    std::vector<int> row{};              // [places]
    std::vector<int> place{};            // [rows][goes_to_]
    std::vector<int> next{};             // [experts]
    std::vector<float> probabilities{};  // [n_experts]
  };
  // Where a place's gated values lie: rows of floats, and blocks, as many of them as the place's expert takes.
  struct Gated {
    int64_t row = 0, block = 0;
  };
  struct Panels;

  void group(Worker& worker, const Rows& rows, const Layer& layer);
  int most_rows(int rows, int workers, Way way) const;
  void run_dealt(Worker& worker, PanelDeal::Hand& hand, const Layer& layer, const Rows& rows, const Linear& then);
  void run_whole(Worker& worker, const Layer& layer, int index, const Rows& rows);
  template <class RowsOf>
  void multiply(PanelDeal::Hand& hand, const Panels& panels, RowsOf rows_of, float* y, int64_t ldy,
                kernels::Upcoming then) const;
  ActivationRows gather(int worker, const Unit& unit, const Rows& rows);
  void gate(const Expert& expert, const float* gate_up, Gated to);
  Gated gated_at(const Rows& rows, int64_t base, int64_t place) const;
  ActivationRows gated(Gated from) const;
  float* gate_up(int64_t row) { return gate_up_.as<float>().data() + row * gate_columns_; }
  float* given(int place) { return given_.as<float>().data() + int64_t{place} * d_columns_; }

  const Hparams& h_;
  const kernels::Ops& ops_;
  const kernels::GateKind kind_;
  int goes_to_ = 0;  // experts of a row, the shared one included
  int score_columns_ = 0, gate_columns_ = 0, d_columns_ = 0;
  int gated_width_ = 0;                             // of the widest expert
  int in_blocks_ = 0, gated_blocks_ = 0;            // of a row of int8 or bf16 activations
  bool int8_ = false, bf16_ = false, f32_ = false;  // some expert takes such activations

  size_t bytes_read_ = 0;
  std::vector<Group> groups_{};                       // [workers]
  std::unique_ptr<std::atomic<int>[]> next_unit_{};  // [n_layers]

  // Scores [rows]; choices and rounded inputs [own rows]; gathered [workers][kMostRows]; gate_up [places], gated the same
  // or that of each worker, whole experts both [workers][kMostRows]; what the experts gave [places][d_model].
  Buffer scores_{}, chosen_{}, weights_{}, in_int8_{}, in_bf16_{};
  Buffer gathered_f32_{}, gathered_int8_{}, gathered_bf16_{};
  Buffer gate_up_{}, gated_{}, gated_int8_{}, gated_bf16_{}, given_{};
};

}  // namespace unisono::model

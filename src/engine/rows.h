// The middle of a step: from a plan to the model's flat arrays, and from rows of logits to tokens. Its memory is reused.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "base/thread_team.h"
#include "decode/logprobs.h"
#include "decode/sampler.h"
#include "engine/job.h"
#include "engine/scheduler.h"
#include "model/batch.h"

namespace unisono::engine {

// What is read from one row of logits.
struct LogitsRow {
  Job* job = nullptr;
  int position = 0;            // of the row's token: its logits say what comes at position + 1
  bool scores_prompt = false;  // the log-probability of the prompt token at position + 1; else a choice
};

// What a row gave.
struct Pick {
  std::optional<TokenId> token{};  // scores_prompt: the prompt's. Absent: no token can be chosen
  TokenResult result{};            // where log-probabilities are asked for
};

class StepRows {
 public:
  explicit StepRows(int token_budget, int max_running, int n_threads);

  // Fills the arrays from a plan of Jobs; valid until the next build.
  const model::Batch& build(std::span<const PlanItem> plan);
  // logits [rows().size()][vocab]. The rows are dealt to the team's threads; what comes out doesn't depend on how.
  void pick(std::span<const float> logits, ThreadTeam& team);

  std::span<const LogitsRow> rows() const { return rows_; }
  std::span<Pick> picks() { return picks_; }  // one for each row

 private:
  struct Scratch {
    decode::SamplerScratch sampler{};
    decode::LogprobScratch logprobs{};
    std::vector<decode::Scored> top{};
  };
  static void pick_row(const LogitsRow& row, std::span<const float> logits, Scratch& scratch, Pick& pick);

  std::vector<TokenId> tokens_{};
  std::vector<model::BatchSequence> sequences_{};
  std::vector<int32_t> logits_rows_{};
  model::Batch batch_{};
  std::vector<LogitsRow> rows_{};
  std::vector<Pick> picks_{};
  std::vector<Scratch> scratch_;  // [threads]
};

}  // namespace unisono::engine

// How fast a model runs here: prefill and decode at a depth, for one or many sequences. Runs the model directly.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "base/result.h"
#include "base/thread_team.h"
#include "model/kv_store.h"
#include "model/model.h"

namespace unisono::eval {

struct BenchOptions {
  int prompt = 512;    // tokens of a prefill; 0: none
  int generate = 64;   // tokens of a decode; 0: none
  int depth = 0;       // positions before them
  int sequences = 1;   // decoded together; prefill is always of one
  int repetitions = 5;
  model::KvType kv = model::KvType::f16;
};

struct BenchResult {
  std::string test{};  // "prefill" or "decode"
  int tokens = 0;      // of one repetition, over all sequences
  int depth = 0, sequences = 1;
  std::vector<double> seconds{};  // of each repetition
  double bytes_per_step = 0;      // weights, and keys and values of the depth, that a step reads

  double rate(double seconds_of_one) const { return tokens / seconds_of_one; }
  double fastest() const;
  double median() const;
  double slowest() const;
};

// One warm-up, then the repetitions. Refused: depth and tokens beyond the model's context.
Result<std::vector<BenchResult>> bench(model::Model& model, ThreadTeam& team, const BenchOptions& options,
                                       const std::function<void(const std::string&)>& progress);

}  // namespace unisono::eval

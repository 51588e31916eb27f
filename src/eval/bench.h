// How fast a model runs here: prefill and decode at a depth, for one or many sequences, beside the machine's limits. Runs
// the model directly, without an engine.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "base/result.h"
#include "base/thread_team.h"
#include "eval/machine_probe.h"
#include "model/kv_store.h"
#include "model/model.h"

namespace unisono::eval {

struct BenchOptions {
  int prompt = 512;                  // tokens of a prefill; 0: none
  int generate = 64;                 // tokens of a decode; 0: none
  std::vector<int> depths = {0};     // positions before them
  std::vector<int> sequences = {1};  // computed together
  bool shared_prefix = false;        // decode also with one copy of those positions, for all sequences
  int repetitions = 5;
  model::KvType kv = model::KvType::bf16;
  double most_kv_bytes = 1e18;  // more is refused
};

struct BenchResult {
  std::string test{};  // "prefill" or "decode"
  int depth = 0, sequences = 1;
  bool shared = false;            // the positions before are one copy
  int tokens = 0;                 // of one repetition, over all sequences
  double bytes = 0;               // of weights, keys and values that a repetition must read; prefill: 0, not counted
  double operations = 0;          // in products and attention; a multiply-add counts as two
  std::vector<double> seconds{};  // of each repetition
  std::vector<double> read_limits{}, arithmetic_limits{};  // bytes and operations a second, probed before each

  // Per second, by the median time.
  double tokens_rate() const;
  double slowest() const;
  double fastest() const;
  double bytes_rate() const;
  double operations_rate() const;
  // Of the probed limits (medians); the larger says what bounds the test.
  double read_share() const;
  double arithmetic_share() const;
};

double median(std::vector<double> values);  // of at least one

// For each depth, then each number of sequences: prefill, decode. One warm-up, then the repetitions, those with prefixes
// shared and not in turns. Refused: key/value memory above the limit. Depths beyond the model's context are measured: the
// arithmetic is the same.
Result<std::vector<BenchResult>> bench(model::Model& model, ThreadTeam& team, const BenchOptions& options,
                                       const std::function<void(const std::string&)>& progress);

}  // namespace unisono::eval

#include "eval/bench.h"

#include <algorithm>
#include <chrono>
#include <numeric>

#include "base/philox.h"

namespace unisono::eval {

namespace {

constexpr int kChunk = 512;  // tokens of a prefill step

double now() { return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count(); }

// Sequences with blocks of their own and random tokens.
class Bench {
 public:
  Bench(model::Model& model, ThreadTeam& team, const BenchOptions& options)
      : model_(model),
        team_(team),
        positions_(options.depth + std::max(options.prompt, options.generate)),
        blocks_((positions_ + model::kBlockTokens - 1) / model::kBlockTokens),
        kv_(options.kv, model.hparams().n_layers, model.hparams().n_kv_heads, model.hparams().head_dim, blocks_ * options.sequences) {
    for (int s = 0; s < options.sequences; s++) {
      tables_.emplace_back(static_cast<size_t>(blocks_));
      std::iota(tables_.back().begin(), tables_.back().end(), s * blocks_);
    }
  }

  // Positions [from, to) of one sequence, in chunks; the last token's logits are wanted.
  void prefill(int sequence, int from, int to) {
    for (int at = from; at < to; at += kChunk) {
      const int n = std::min(kChunk, to - at), last = n - 1;
      tokens_.resize(static_cast<size_t>(n));
      for (int i = 0; i < n; i++) tokens_[static_cast<size_t>(i)] = token(sequence, at + i);
      const model::BatchSequence part{0, n, at, tables_[static_cast<size_t>(sequence)]};
      model_.forward({tokens_, {&part, 1}, at + n == to ? std::span<const int32_t>(&last, 1) : std::span<const int32_t>()}, kv_, team_);
    }
  }
  // One token of every sequence at `position`.
  void decode(int position) {
    parts_.clear();
    rows_.clear();
    tokens_.clear();
    for (int s = 0; s < static_cast<int>(tables_.size()); s++) {
      parts_.push_back({s, 1, position, tables_[static_cast<size_t>(s)]});
      tokens_.push_back(token(s, position));
      rows_.push_back(s);
    }
    model_.forward({tokens_, parts_, rows_}, kv_, team_);
  }
  int positions() const { return positions_; }

 private:
  int32_t token(int sequence, int position) const {
    return static_cast<int32_t>(philox_uniform(1, static_cast<uint32_t>(sequence), static_cast<uint64_t>(position)) *
                                model_.hparams().vocab_size);
  }
  model::Model& model_;
  ThreadTeam& team_;
  int positions_, blocks_;
  model::KvStore kv_;
  std::vector<std::vector<int32_t>> tables_{};
  std::vector<int32_t> tokens_{}, rows_{};
  std::vector<model::BatchSequence> parts_{};
};

}  // namespace

double BenchResult::fastest() const { return rate(*std::min_element(seconds.begin(), seconds.end())); }
double BenchResult::slowest() const { return rate(*std::max_element(seconds.begin(), seconds.end())); }
double BenchResult::median() const {
  std::vector<double> sorted = seconds;
  std::sort(sorted.begin(), sorted.end());
  const size_t n = sorted.size();
  return rate(n % 2 == 1 ? sorted[n / 2] : (sorted[n / 2 - 1] + sorted[n / 2]) / 2);
}

Result<std::vector<BenchResult>> bench(model::Model& model, ThreadTeam& team, const BenchOptions& o,
                                       const std::function<void(const std::string&)>& progress) {
  const auto& h = model.hparams();
  if (o.depth + std::max(o.prompt, o.generate) > h.context_length)
    return Error{"Depth and tokens together are more than the model's context of " + std::to_string(h.context_length) + "."};
  Bench run(model, team, o);
  std::vector<BenchResult> results;
  const double kv_token = static_cast<double>(model::KvStore::block_bytes(o.kv, h.n_layers, h.n_kv_heads, h.head_dim)) / model::kBlockTokens;
  if (o.depth > 0) {
    progress("filling " + std::to_string(o.depth) + " positions");
    for (int s = 0; s < o.sequences; s++) run.prefill(s, 0, o.depth);
  }
  if (o.prompt > 0) {
    BenchResult r{.test = "prefill", .tokens = o.prompt, .depth = o.depth};
    r.bytes_per_step = static_cast<double>(model.weight_bytes());
    for (int i = 0; i <= o.repetitions; i++) {
      progress("prefill " + std::to_string(i) + " of " + std::to_string(o.repetitions));
      const double begin = now();
      run.prefill(0, o.depth, o.depth + o.prompt);
      if (i > 0) r.seconds.push_back(now() - begin);
    }
    results.push_back(std::move(r));
  }
  if (o.generate > 0) {
    BenchResult r{.test = "decode", .tokens = o.generate * o.sequences, .depth = o.depth, .sequences = o.sequences};
    r.bytes_per_step = static_cast<double>(model.weight_bytes()) + o.sequences * (o.depth + o.generate / 2.0) * kv_token;
    for (int i = 0; i <= o.repetitions; i++) {
      progress("decode " + std::to_string(i) + " of " + std::to_string(o.repetitions));
      const double begin = now();
      for (int t = 0; t < o.generate; t++) run.decode(o.depth + t);
      if (i > 0) r.seconds.push_back(now() - begin);
    }
    results.push_back(std::move(r));
  }
  return results;
}

}  // namespace unisono::eval

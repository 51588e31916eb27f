#include "eval/bench.h"

#include <algorithm>
#include <numeric>

#include "base/philox.h"

namespace unisono::eval {

namespace {

constexpr int kBudget = 512;  // tokens of a prefill step
constexpr int kBlock = model::kBlockTokens;

// Sequences with random tokens, in blocks of their own; or, for the same sequences, with the full blocks of `depth`
// positions being those of sequence 0 for all.
class Sequences {
 public:
  Sequences(model::Model& model, ThreadTeam& team, model::KvType kv, int count, int positions)
      : model_(model),
        team_(team),
        blocks_(model::blocks_for(positions)),
        kv_(kv, model.hparams().n_layers, model.hparams().n_kv_heads, model.hparams().head_dim, blocks_ * count) {
    kv_.interleave(team.nodes());
    for (int s = 0; s < count; s++) {
      own_.emplace_back(static_cast<size_t>(blocks_));
      std::iota(own_.back().begin(), own_.back().end(), s * blocks_);
    }
    shared_ = own_;
  }

  // Computes the first `depth` positions of one sequence and gives all others copies.
  void fill(int depth) {
    if (depth == 0) return;
    prefill(1, 0, depth);
    for (size_t s = 1; s < own_.size(); s++)
      for (int b = 0; b < model::blocks_for(depth); b++) kv_.copy_block(b, own_[s][static_cast<size_t>(b)]);
    for (auto& table : shared_) std::iota(table.begin(), table.begin() + depth / kBlock, 0);
  }

  // Of the weights that all steps read so far.
  double weight_bytes() const { return weight_bytes_; }

  // Positions [from, to) of the first n sequences, in steps of the budget; each one's last logits are wanted.
  void prefill(int n, int from, int to) {
    begin_step();
    for (int s = 0; s < n; s++)
      for (int at = from; at < to;) {
        const int some = std::min(kBudget - static_cast<int>(tokens_.size()), to - at);
        add(s, at, some, at + some == to, own_);
        at += some;
        if (static_cast<int>(tokens_.size()) == kBudget) step();
      }
    if (!tokens_.empty()) step();
  }
  // One token of the first n sequences at `position`.
  void decode(int n, int position, bool shared) {
    begin_step();
    for (int s = 0; s < n; s++) add(s, position, 1, true, shared ? shared_ : own_);
    step();
  }

 private:
  void begin_step() {
    parts_.clear();
    rows_.clear();
    tokens_.clear();
  }
  void add(int sequence, int at, int n, bool last, const std::vector<std::vector<int32_t>>& tables) {
    parts_.push_back({static_cast<int>(tokens_.size()), n, at, tables[static_cast<size_t>(sequence)]});
    for (int i = 0; i < n; i++)
      tokens_.push_back(static_cast<int32_t>(
          philox_uniform(1, static_cast<uint32_t>(sequence), static_cast<uint64_t>(at + i)) * model_.hparams().vocab_size));
    if (last) rows_.push_back(static_cast<int32_t>(tokens_.size()) - 1);
  }
  void step() {
    model_.forward({tokens_, parts_, rows_}, kv_, team_);
    weight_bytes_ += static_cast<double>(model_.weight_bytes_read());
    begin_step();
  }

  model::Model& model_;
  ThreadTeam& team_;
  int blocks_;
  model::KvStore kv_;
  std::vector<std::vector<int32_t>> own_{}, shared_{};
  std::vector<int32_t> tokens_{}, rows_{};
  std::vector<model::BatchSequence> parts_{};
  double weight_bytes_ = 0;
};

// What a repetition has to do at least.
class Cost {
 public:
  Cost(const model::Model& model, model::KvType kv) : h_(model.hparams()) {
    kv_token_ = static_cast<double>(model::KvStore::block_bytes(kv, 1, h_.n_kv_heads, h_.head_dim)) / kBlock;
    const double d = h_.d_model, q = static_cast<double>(h_.n_heads) * h_.head_dim,
                 kv_rows = static_cast<double>(h_.n_kv_heads) * h_.head_dim;
    const double networks = h_.n_experts > 0 ? h_.n_experts_used : 1;
    const double shared = h_.shared_ff > 0 ? d * (1 + 3.0 * h_.shared_ff) : 0;
    const double feed_forward = d * h_.n_experts + networks * 3 * d * h_.d_ff + shared;
    const double keys_values = 2.0 * d * 2 * kv_rows, rest = 2.0 * (2 * d * q + feed_forward);
    token_ = h_.n_layers * keys_values + (h_.n_layers - 1) * rest;
    logits_ = rest + 2.0 * d * h_.vocab_size;
  }
  // Of tokens at [from, to) of one sequence, the logits of the last so many wanted: of the others the last layer gives
  // keys and values only.
  double operations(int from, int to, int logits_rows) const {
    double sum = token_ * (to - from) + logits_ * logits_rows;
    for (int layer = 0; layer < h_.n_layers; layer++)
      for (int at = layer + 1 < h_.n_layers ? from : to - logits_rows; at < to; at++) sum += 4.0 * h_.n_heads * h_.head_dim * seen(layer, at);
    return sum;
  }
  // Of keys and values of one decode step of n sequences at a position; with shared, `depth` positions are read once.
  double kv_bytes(int n, int position, int depth, bool shared) const {
    double sum = 0;
    for (int layer = 0; layer < h_.n_layers; layer++) {
      const int all = seen(layer, position), own = std::min(all, position + 1 - depth);
      sum += kv_token_ * (shared ? n * own + (all - own) : n * all);
    }
    return sum;
  }

 private:
  int seen(int layer, int position) const {
    return h_.windowed[static_cast<size_t>(layer)] != 0 ? std::min(h_.window, position + 1) : position + 1;
  }
  const model::Hparams& h_;
  double kv_token_, token_, logits_;
};

class Bench {
 public:
  Bench(model::Model& model, ThreadTeam& team, const BenchOptions& options,
        const std::function<void(const std::string&)>& progress)
      : model_(model),
        team_(team),
        o_(options),
        cost_(model, options.kv),
        probe_(kernels::probe_of(model.ops()), team),
        progress_(progress) {}

  void at_depth(int depth, std::vector<BenchResult>& results) {
    const int most = *std::max_element(o_.sequences.begin(), o_.sequences.end());
    Sequences sequences(model_, team_, o_.kv, most, depth + std::max(o_.prompt, o_.generate));
    if (depth > 0) progress_("filling " + std::to_string(depth) + " positions");
    sequences.fill(depth);
    for (int n : o_.sequences) {
      if (o_.prompt > 0) {
        BenchResult r{.test = "prefill", .depth = depth, .sequences = n, .tokens = n * o_.prompt};
        r.operations = n * cost_.operations(depth, depth + o_.prompt, 1);
        repeat({&r, 1}, [&](bool) { sequences.prefill(n, depth, depth + o_.prompt); });
        results.push_back(std::move(r));
      }
      if (o_.generate > 0) {
        std::vector<BenchResult> kinds;
        for (bool shared : {false, true}) {
          if (shared && !(o_.shared_prefix && n > 1 && depth > 0)) continue;
          BenchResult r{.test = "decode", .depth = depth, .sequences = n, .shared = shared, .tokens = n * o_.generate};
          r.operations = n * cost_.operations(depth, depth + o_.generate, o_.generate);
          for (int t = 0; t < o_.generate; t++) r.bytes += cost_.kv_bytes(n, depth + t, depth / kBlock * kBlock, shared);
          kinds.push_back(std::move(r));
        }
        const double before = sequences.weight_bytes();
        repeat(kinds, [&](bool shared) {
          for (int t = 0; t < o_.generate; t++) sequences.decode(n, depth + t, shared);
        });
        // Which experts are read follows from the tokens: in each repetition the same.
        const double weights = (sequences.weight_bytes() - before) / static_cast<double>(kinds.size()) / (o_.repetitions + 1);
        for (BenchResult& r : kinds) {
          r.bytes += weights;
          results.push_back(std::move(r));
        }
      }
    }
  }

 private:
  template <class Run>
  void repeat(std::span<BenchResult> kinds, Run run) {
    for (int i = 0; i <= o_.repetitions; i++)
      for (BenchResult& r : kinds) {
        progress_(r.test + (r.shared ? " on a shared prefix" : "") + " of " + std::to_string(r.sequences) + " at " +
                  std::to_string(r.depth) + ": " + std::to_string(i) + " of " + std::to_string(o_.repetitions));
        if (i > 0) {  // not for the warm-up
          r.read_limits.push_back(probe_.read_bytes());
          r.arithmetic_limits.push_back(probe_.operations(model_.activations()));
        }
        const double begin = seconds_now();
        run(r.shared);
        if (i > 0) r.seconds.push_back(seconds_now() - begin);
      }
  }

  model::Model& model_;
  ThreadTeam& team_;
  const BenchOptions& o_;
  Cost cost_;
  MachineProbe probe_;
  const std::function<void(const std::string&)>& progress_;
};

}  // namespace

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  const size_t n = values.size();
  return n % 2 == 1 ? values[n / 2] : (values[n / 2 - 1] + values[n / 2]) / 2;
}

double BenchResult::tokens_rate() const { return tokens / median(seconds); }
double BenchResult::slowest() const { return tokens / *std::max_element(seconds.begin(), seconds.end()); }
double BenchResult::fastest() const { return tokens / *std::min_element(seconds.begin(), seconds.end()); }
double BenchResult::bytes_rate() const { return bytes / median(seconds); }
double BenchResult::operations_rate() const { return operations / median(seconds); }
double BenchResult::read_share() const { return bytes_rate() / median(read_limits); }
double BenchResult::arithmetic_share() const { return operations_rate() / median(arithmetic_limits); }

Result<std::vector<BenchResult>> bench(model::Model& model, ThreadTeam& team, const BenchOptions& o,
                                       const std::function<void(const std::string&)>& progress) {
  const auto& h = model.hparams();
  for (int depth : o.depths)
    for (int n : o.sequences) {
      const double blocks = static_cast<double>(n) * model::blocks_for(depth + std::max(o.prompt, o.generate));
      const double bytes =
          blocks * static_cast<double>(model::KvStore::block_bytes(o.kv, h.n_layers, h.n_kv_heads, h.head_dim));
      if (bytes > o.most_kv_bytes)
        return Error{"Keys and values of " + std::to_string(n) + " sequences at depth " + std::to_string(depth) + " need " +
                         std::to_string(static_cast<int64_t>(bytes / 1e6)) + " MB, more than the " +
                         std::to_string(static_cast<int64_t>(o.most_kv_bytes / 1e6)) +
                         " MB there are: ask for fewer or less deep.",
                     "--depth"};
    }
  std::vector<BenchResult> results;
  Bench run(model, team, o, progress);
  for (int depth : o.depths) run.at_depth(depth, results);
  return results;
}

}  // namespace unisono::eval

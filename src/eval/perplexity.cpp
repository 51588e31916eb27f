#include "eval/perplexity.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <numeric>

#include "base/buffer.h"

namespace unisono::eval {

namespace {

constexpr int kRows = 64;  // logits at a time: they are large

// log-probabilities in double.
void log_softmax(std::span<const float> logits, std::vector<double>& out) {
  out.resize(logits.size());
  const double top = *std::max_element(logits.begin(), logits.end());
  double sum = 0;
  for (float x : logits) sum += std::exp(x - top);
  const double shift = top + std::log(sum);
  for (size_t i = 0; i < logits.size(); i++) out[i] = logits[i] - shift;
}

// Runs one chunk and gives each position's logits to `see`.
template <class See>
void run_chunk(model::Model& model, model::KvStore& kv, ThreadTeam& team, std::span<const int32_t> tokens, See see) {
  const int n = static_cast<int>(tokens.size());
  std::vector<int32_t> blocks(static_cast<size_t>(model::blocks_for(n)));
  std::iota(blocks.begin(), blocks.end(), 0);
  const auto vocab = static_cast<size_t>(model.hparams().vocab_size);
  for (int at = 0; at < n; at += kRows) {
    const int some = std::min(kRows, n - at);
    std::vector<int32_t> rows(static_cast<size_t>(some));
    std::iota(rows.begin(), rows.end(), 0);
    const model::BatchSequence sequence{0, some, at, blocks};
    const auto logits = model.forward({tokens.subspan(static_cast<size_t>(at), static_cast<size_t>(some)), {&sequence, 1}, rows}, kv, team);
    for (int i = 0; i < some; i++) see(at + i, logits.subspan(static_cast<size_t>(i) * vocab, vocab));
  }
}

model::KvStore store_for(const model::Model& model, const ThreadTeam& team, model::KvType type, int context) {
  const auto& h = model.hparams();
  model::KvStore kv(type, h.n_layers, h.n_kv_heads, h.head_dim, model::blocks_for(context));
  kv.interleave(team.nodes());
  return kv;
}

}  // namespace

PerplexityReport perplexity(model::Model& model, ThreadTeam& team, model::KvType kv_type, std::span<const int32_t> tokens, int context,
                            const std::function<void(const PerplexityReport&)>& report) {
  model::KvStore kv = store_for(model, team, kv_type, context);
  PerplexityReport r{.context = context};
  double loss = 0;
  std::vector<double> log_p;
  for (size_t at = 0; at + static_cast<size_t>(context) <= tokens.size(); at += static_cast<size_t>(context)) {
    const auto chunk = tokens.subspan(at, static_cast<size_t>(context));
    run_chunk(model, kv, team, chunk, [&](int position, std::span<const float> logits) {
      if (position + 1 == context) return;
      log_softmax(logits, log_p);
      loss -= log_p[static_cast<size_t>(chunk[static_cast<size_t>(position) + 1])];
    });
    r.chunks++;
    r.perplexity = std::exp(loss / (r.chunks * (context - 1.0)));
    report(r);
  }
  return r;
}

Result<PerplexityReport> divergence(model::Model& model, ThreadTeam& team, model::KvType kv_type, const std::string& path,
                                    const std::function<void(const PerplexityReport&)>& report) {
  auto file = MappedFile::open(path);
  if (!file) return file.error();
  const auto bytes = file->bytes();
  int32_t head[3];
  if (bytes.size() < 16 || std::memcmp(bytes.data(), "UKL1", 4) != 0)
    return Error{"'" + path + "' is no reference file: it doesn't begin with UKL1.", path};
  std::memcpy(head, bytes.data() + 4, 12);
  const auto [chunks, context, vocab] = head;
  if (vocab != model.hparams().vocab_size)
    return Error{"'" + path + "' has a vocabulary of " + std::to_string(vocab) + " tokens, the model " +
                     std::to_string(model.hparams().vocab_size) + ".",
                 path};
  const auto row = static_cast<size_t>(vocab), length = static_cast<size_t>(context);
  if (chunks < 1 || context < 2 || context > (1 << 20) || (bytes.size() - 16) / (4 * length * (1 + row)) < static_cast<size_t>(chunks))
    return Error{"'" + path + "' is cut short.", path};

  model::KvStore kv = store_for(model, team, kv_type, context);
  PerplexityReport r{.context = context};
  double loss = 0, kl_sum = 0, kl_sum_all = 0;
  int64_t positions = 0, positions_all = 0, same = 0;
  std::vector<double> log_p, log_q;
  std::vector<int32_t> tokens(length);
  const std::byte* at = bytes.data() + 16;
  for (int c = 0; c < chunks; c++) {
    std::memcpy(tokens.data(), at, 4 * length);
    for (int32_t t : tokens)
      if (t < 0 || t >= vocab) return Error{"'" + path + "' holds a token outside the vocabulary.", path};
    const auto* reference = reinterpret_cast<const float*>(at + 4 * length);
    run_chunk(model, kv, team, tokens, [&](int position, std::span<const float> logits) {
      log_softmax({reference + static_cast<size_t>(position) * row, row}, log_p);
      log_softmax(logits, log_q);
      double kl = 0;
      for (size_t i = 0; i < row; i++) kl += std::exp(log_p[i]) * (log_p[i] - log_q[i]);
      kl_sum_all += kl;
      r.largest_kl_all = std::max(r.largest_kl_all, kl);
      positions_all++;
      if (position >= context / 2) {
        kl_sum += kl;
        r.largest_kl = std::max(r.largest_kl, kl);
        same += std::max_element(log_p.begin(), log_p.end()) - log_p.begin() == std::max_element(log_q.begin(), log_q.end()) - log_q.begin();
        positions++;
      }
      if (position + 1 < context) loss -= log_q[static_cast<size_t>(tokens[static_cast<size_t>(position) + 1])];
    });
    at += 4 * length * (1 + row);
    r.chunks++;
    r.perplexity = std::exp(loss / (r.chunks * (context - 1.0)));
    r.mean_kl = kl_sum / static_cast<double>(positions);
    r.mean_kl_all = kl_sum_all / static_cast<double>(positions_all);
    r.same_top = static_cast<double>(same) / static_cast<double>(positions);
    report(r);
  }
  return r;
}

}  // namespace unisono::eval

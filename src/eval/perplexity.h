// How likely a model finds a text, and how far its distributions are from a reference's. Runs the model directly, chunk by
// chunk, without an engine.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "base/thread_team.h"
#include "model/kv_store.h"
#include "model/model.h"

namespace unisono::eval {

struct PerplexityReport {
  int chunks = 0, context = 0;
  double perplexity = 0;  // over all tokens but each chunk's first
  // Against a reference, in nats, over the second half of each chunk (what comes early has little context and differs more;
  // llama-perplexity counts the same positions), and over all positions.
  double mean_kl = 0, largest_kl = 0;
  double same_top = 0;  // share of positions whose likeliest token is the reference's
  double mean_kl_all = 0, largest_kl_all = 0;
};

// Each chunk of `context` tokens is a text of its own. report: called after each chunk with what is known so far.
PerplexityReport perplexity(model::Model& model, ThreadTeam& team, model::KvType kv, std::span<const int32_t> tokens, int context,
                            const std::function<void(const PerplexityReport&)>& report);

// The same on the tokens of a reference file (written by tests/golden/kl.py, which describes it), with the KL divergence of
// the model's distributions from the reference's: sum p_ref (log p_ref - log p_model).
Result<PerplexityReport> divergence(model::Model& model, ThreadTeam& team, model::KvType kv, const std::string& path,
                                    const std::function<void(const PerplexityReport&)>& report);

}  // namespace unisono::eval

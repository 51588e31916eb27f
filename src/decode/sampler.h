// From a row of logits to a token, in one documented order: constraint, bias and bans -> penalties -> temperature -> top-k -> top-p ->
// min-p -> choice. The result depends on its arguments and on nothing else.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "base/result.h"
#include "decode/chain.h"
#include "decode/params.h"
#include "decode/penalties.h"
#include "decode/select.h"

namespace unisono::decode {

// Reused memory of one thread: after the first rows of a vocabulary nothing is allocated.
struct SamplerScratch {
  std::vector<float> scores{};   // [vocab] the row with bias, bans and penalties
  std::vector<float> weights{};  // [vocab] or [top_k]
  std::vector<Scored> selected{};
  ChainScratch chain{};
};

// Refused with the field's name as subject: what is outside its range, not a number, or an id outside the vocabulary.
Result<void> validate(const SamplingParams& params, int vocab_size);

// One row's inputs besides the parameters.
struct SampleInput {
  std::span<const float> logits{};      // [vocab]; NaN counts as minus infinity, plus infinity as the largest number
  const TokenCounts* counts = nullptr;  // of the sequence; needed when has_penalties(params)
  std::span<const int32_t> banned{};    // tokens that can't be chosen now
  std::span<const uint64_t> allowed{};  // a bit per token: only these can be chosen; empty: all. Ids past its end: not
  uint64_t position = 0;  // the index the chosen token will have in its sequence: counter of the random number
};

// The chosen token, or nothing when no token can be chosen: every logit is NaN, minus infinity or banned.
// params are valid for this vocabulary. The calling thread flushes denormals, as all computing threads do.
std::optional<int32_t> sample(const SampleInput& input, const SamplingParams& params, SamplerScratch& scratch);

}  // namespace unisono::decode

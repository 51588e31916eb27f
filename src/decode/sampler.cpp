#include "decode/sampler.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>

#include "base/check.h"
#include "base/philox.h"

namespace unisono::decode {

namespace {

void apply_mask(std::span<float> scores, std::span<const uint64_t> allowed) {
  constexpr float kNever = -std::numeric_limits<float>::infinity();
  for (size_t begin = 0; begin < scores.size(); begin += 64) {
    const uint64_t word = begin / 64 < allowed.size() ? allowed[begin / 64] : 0;
    const size_t n = std::min<size_t>(64, scores.size() - begin);
    if (word == ~uint64_t{0}) continue;
    for (size_t i = 0; i < n; i++)
      if ((word >> i & 1) == 0) scores[begin + i] = kNever;
  }
}

// The row as it is, or a changed copy in the scratch.
std::span<const float> edited(const SampleInput& input, const SamplingParams& params, std::vector<float>& copy) {
  const bool penalised = has_penalties(params);
  if (!penalised && params.logit_bias.empty() && input.banned.empty() && input.allowed.empty()) return input.logits;
  copy.assign(input.logits.begin(), input.logits.end());
  apply_bias(copy, params.logit_bias);
  apply_bans(copy, input.banned);
  if (penalised) {
    check(input.counts != nullptr, "penalties need the sequence's counts");
    apply_penalties(copy, params, *input.counts);
  }
  if (!input.allowed.empty()) apply_mask(copy, input.allowed);
  return copy;
}

size_t choose_from(std::span<float> weights, const SamplingParams& params, uint64_t position, ChainScratch& scratch) {
  if (params.top_p < 1.0f) keep_top_p(weights, params.top_p, scratch);
  if (params.min_p > 0.0f) keep_min_p(weights, params.min_p);
  return choose(weights, philox_uniform(params.seed, params.choice, position), scratch);
}

int32_t choose_among_top_k(std::span<const float> scores, float best, const SamplingParams& params, uint64_t position,
                           SamplerScratch& scratch) {
  auto& selected = scratch.selected;
  select_best(scores, static_cast<size_t>(params.top_k), selected);
  std::sort(selected.begin(), selected.end(), [](const Scored& a, const Scored& b) { return a.id < b.id; });
  scratch.scores.resize(std::max(scratch.scores.size(), selected.size()));
  scratch.weights.resize(selected.size());
  // The full row is no longer needed: its copy, if there is one, makes room for the selected scores.
  for (size_t i = 0; i < selected.size(); i++) scratch.scores[i] = selected[i].score;
  weigh(std::span(scratch.scores).first(selected.size()), best, params.temperature, scratch.weights);
  return selected[choose_from(scratch.weights, params, position, scratch.chain)].id;
}

}  // namespace

Result<void> validate(const SamplingParams& params, int vocab_size) {
  const auto refuse = [](const char* field, const char* range) -> Result<void> {
    return Error{.message = std::string(field) + " must be " + range + ".", .subject = field};
  };
  if (!std::isfinite(params.temperature) || params.temperature < 0) return refuse("temperature", "0 or more");
  if (params.top_k < 0) return refuse("top_k", "0 (all) or more");
  if (!(params.top_p > 0 && params.top_p <= 1)) return refuse("top_p", "above 0 and at most 1");
  if (!(params.min_p >= 0 && params.min_p <= 1)) return refuse("min_p", "between 0 and 1");
  if (!std::isfinite(params.repetition_penalty) || params.repetition_penalty <= 0)
    return refuse("repetition_penalty", "above 0");
  if (!std::isfinite(params.frequency_penalty)) return refuse("frequency_penalty", "a finite number");
  if (!std::isfinite(params.presence_penalty)) return refuse("presence_penalty", "a finite number");
  for (const auto& [id, bias] : params.logit_bias) {
    if (id < 0 || id >= vocab_size)
      return Error{.message = "logit_bias names token " + std::to_string(id) + ", but the vocabulary has ids 0 to " +
                              std::to_string(vocab_size - 1) + ".",
                   .subject = "logit_bias"};
    if (!std::isfinite(bias)) return refuse("logit_bias", "finite numbers");
  }
  return {};
}

std::optional<int32_t> sample(const SampleInput& input, const SamplingParams& params, SamplerScratch& scratch) {
  const std::span<const float> scores = edited(input, params, scratch.scores);
  const Scored top = best(scores);
  if (top.id < 0) return std::nullopt;
  if (params.temperature == 0.0f || params.top_k == 1) return top.id;
  if (params.top_k > 0 && static_cast<size_t>(params.top_k) < scores.size())
    return choose_among_top_k(scores, top.score, params, input.position, scratch);
  scratch.weights.resize(scores.size());
  weigh(scores, top.score, params.temperature, scratch.weights);
  return static_cast<int32_t>(choose_from(scratch.weights, params, input.position, scratch.chain));
}

}  // namespace unisono::decode

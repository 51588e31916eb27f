#include "decode/penalties.h"

#include <bit>
#include <limits>

#include "base/check.h"

namespace unisono::decode {

TokenCounts::TokenCounts(size_t max_tokens) : slots_(std::bit_ceil(2 * max_tokens + 2), -1) {
  entries_.reserve(max_tokens);
}

TokenCounts::Entry& TokenCounts::entry(int32_t id) {
  const size_t mask = slots_.size() - 1;
  size_t slot = (static_cast<uint32_t>(id) * 0x9E3779B9u) & mask;
  while (slots_[slot] >= 0) {
    Entry& found = entries_[static_cast<size_t>(slots_[slot])];
    if (found.id == id) return found;
    slot = (slot + 1) & mask;
  }
  check(2 * entries_.size() < slots_.size(), "more tokens counted than announced");
  slots_[slot] = static_cast<int32_t>(entries_.size());
  return entries_.emplace_back(Entry{id, 0});
}

bool has_penalties(const SamplingParams& params) {
  return params.repetition_penalty != 1.0f || params.frequency_penalty != 0.0f || params.presence_penalty != 0.0f;
}

void apply_bias(std::span<float> scores, std::span<const std::pair<int32_t, float>> bias) {
  for (const auto& [id, value] : bias) scores[static_cast<size_t>(id)] += value;
}

void apply_bans(std::span<float> scores, std::span<const int32_t> banned) {
  for (const int32_t id : banned) scores[static_cast<size_t>(id)] = -std::numeric_limits<float>::infinity();
}

void apply_penalties(std::span<float> scores, const SamplingParams& params, const TokenCounts& counts) {
  const float repetition = params.repetition_penalty;
  for (const auto& [id, in_answer] : counts.entries()) {
    float& score = scores[static_cast<size_t>(id)];
    if (repetition != 1.0f) score = score > 0 ? score / repetition : score * repetition;
    if (in_answer > 0) score -= static_cast<float>(in_answer) * params.frequency_penalty + params.presence_penalty;
  }
}

}  // namespace unisono::decode

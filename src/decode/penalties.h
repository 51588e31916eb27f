// What pushes single tokens up or down before any probability is computed: bans, biases and the three penalties. Works in
// place on a copy of the row.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "decode/params.h"

namespace unisono::decode {

// Which tokens a sequence holds, and how often its answer does. Grown as the sequence grows; adding allocates nothing.
class TokenCounts {
 public:
  struct Entry {
    int32_t id = 0;
    int32_t in_answer = 0;  // 0: in the prompt only
  };

  // max_tokens: of the whole sequence.
  explicit TokenCounts(size_t max_tokens);

  void add_prompt(int32_t id) { entry(id); }
  void add_answer(int32_t id) { entry(id).in_answer++; }
  // Distinct tokens, in the order of their first appearance.
  std::span<const Entry> entries() const { return entries_; }

 private:
  Entry& entry(int32_t id);

  std::vector<Entry> entries_{};
  std::vector<int32_t> slots_{};  // open addressing: position in entries_, -1 is free; at most half full
};

bool has_penalties(const SamplingParams& params);

// Ids are inside the row. A banned token can't be chosen, whatever its bias.
void apply_bias(std::span<float> scores, std::span<const std::pair<int32_t, float>> bias);
void apply_bans(std::span<float> scores, std::span<const int32_t> banned);

// Repetition over prompt and answer as HF has it (positive scores divided, negative ones multiplied), then frequency and
// presence over the answer as OpenAI has them.
void apply_penalties(std::span<float> scores, const SamplingParams& params, const TokenCounts& counts);

}  // namespace unisono::decode

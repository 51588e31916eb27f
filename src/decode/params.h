// How a row of logits becomes a token: the part of a request that says so.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

namespace unisono::decode {

struct SamplingParams {
  float temperature = 1.0f;  // 0: greedy, the lowest id wins a tie
  int top_k = 0;             // 0: all
  float top_p = 1.0f;        // 1: all
  float min_p = 0.0f;        // 0: all; else keep what has at least min_p times the best probability
  uint64_t seed = 0;
  uint32_t choice = 0;  // index of the choice (n > 1): another stream of random numbers
  std::vector<std::pair<int32_t, float>> logit_bias{};
  float repetition_penalty = 1.0f;  // over prompt and answer, as HF has it
  float frequency_penalty = 0.0f;   // over the answer, as OpenAI has it
  float presence_penalty = 0.0f;
};

}  // namespace unisono::decode

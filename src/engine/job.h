// A request inside the engine: its sequence, its tokens and its answer so far. Owned by the engine thread once submitted.
#pragma once

#include <algorithm>
#include <chrono>
#include <optional>
#include <span>
#include <vector>

#include "decode/penalties.h"
#include "engine/output.h"
#include "engine/request.h"
#include "engine/sequence.h"
#include "engine/thought_watch.h"
#include "grammar/matcher.h"
#include "text/tokenizer.h"

namespace unisono::engine {

using Clock = std::chrono::steady_clock;

struct Job : Sequence {
  // Takes all the memory it will need, so that the steps allocate none for it. The request is valid for this context.
  Job(uint64_t id, Request r, const text::Tokenizer& tokenizer, std::span<const TokenId> model_ends, int max_context)
      : id(id), request(std::move(r)), output(request, tokenizer, model_ends, max_context) {
    const auto n_prompt = static_cast<int>(request.prompt.size());
    const int longest = n_prompt + std::min(request.max_tokens, max_context - n_prompt);
    tokens.reserve(static_cast<size_t>(longest));
    blocks.reserve(static_cast<size_t>(blocks_for(longest)));
    window_blocks.reserve(blocks.capacity());
    tokens.assign(request.prompt.begin(), request.prompt.end());
    n_tokens = n_prompt;
    salt = request.cache_salt;
    priority = request.priority;
    owner = request.owner;
    if (request.prompt_logprobs) {
      score_until = n_prompt - 1;
      prompt_results.reserve(static_cast<size_t>(n_prompt - 1));
    }
    if (request.constraint) {
      constraint = request.constraint;
      allowed.resize(constraint->mask_words());
    }
    if (request.thoughts) thoughts.emplace(*request.thoughts, tokenizer);
    if (decode::has_penalties(request.sampling)) {
      counts.emplace(static_cast<size_t>(longest));
      for (const TokenId token : tokens) counts->add_prompt(token);
    }
  }
  Job(const Job&) = delete;
  Job& operator=(const Job&) = delete;

  void append(TokenId token) {
    tokens.push_back(token);
    n_tokens++;
    if (counts) counts->add_answer(token);
  }

  const uint64_t id;
  const Request request;
  Output output;
  std::optional<decode::TokenCounts> counts{};   // with penalties
  std::optional<grammar::Matcher> constraint{};  // after the answer so far
  std::vector<uint64_t> allowed{};               // with a constraint: what it allows next, as StepRows::pick fills it
  std::optional<ThoughtWatch> thoughts{};        // where they have a budget
  std::vector<TokenResult> prompt_results{};     // of prompt tokens 1, 2, ..., as far as scored
  Clock::time_point submitted{}, started{}, first_token{};
  bool has_started = false;
  bool has_answered = false;  // the first delta is sent
};

}  // namespace unisono::engine

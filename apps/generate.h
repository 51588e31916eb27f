// One answer on the terminal: shared by run and chat.
#pragma once

#include <CLI/CLI.hpp>
#include <atomic>
#include <functional>
#include <string>
#include <vector>

#include "engine/engine.h"
#include "session.h"

namespace unisono::apps {

struct SamplingFlags {
  float temperature = 0;
  int top_k = 0;
  float top_p = 1, min_p = 0;
  uint64_t seed = 0;
  int max_tokens = 0;  // 0: to the end of the context
  std::vector<std::string> stop{};
};
// The defaults are those that the flags have.
void add_sampling_flags(CLI::App& command, SamplingFlags& flags);

struct Answer {
  std::string text{};
  std::vector<text::TokenId> tokens{};
  engine::FinishReason finish = engine::FinishReason::error;
  std::string stop_detail{};
  engine::Usage usage{};
  engine::Timings timings{};
};

// Runs one request to its end; on_text gets the text as it comes. `stop`, when it becomes true, cancels it. constraint: what
// the answer must belong to.
Result<Answer> generate(Session& session, std::vector<text::TokenId> prompt, const SamplingFlags& flags,
                        const std::function<void(const std::string&)>& on_text, const std::atomic<bool>* stop = nullptr,
                        std::optional<grammar::Matcher> constraint = {});

// "27 tokens in: 812 tok/s; 64 out: 131 tok/s (ended by end token)"
std::string speed_line(const Answer& answer);
const char* finish_text(engine::FinishReason reason);

}  // namespace unisono::apps

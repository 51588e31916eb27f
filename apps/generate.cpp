#include "generate.h"

#include <fmt/format.h>

#include <chrono>
#include <condition_variable>
#include <mutex>

#include "input.h"

namespace unisono::apps {

using engine::FinishReason;

void add_sampling_flags(CLI::App& command, SamplingFlags& flags) {
  command.add_option("--temperature", flags.temperature, "0: always the likeliest token")
      ->check(CLI::Range(0.0, 100.0))
      ->capture_default_str();
  command.add_option("--top-k", flags.top_k, "Choose among the k likeliest; 0: all")
      ->check(CLI::Range(0, 1 << 30))
      ->capture_default_str();
  command.add_option("--top-p", flags.top_p, "Choose among the likeliest that make up this probability")
      ->check(CLI::Range(0.0, 1.0))
      ->capture_default_str();
  command.add_option("--min-p", flags.min_p, "Leave out what is less likely than this times the likeliest")
      ->check(CLI::Range(0.0, 1.0))
      ->capture_default_str();
  command.add_option("--seed", flags.seed, "The same seed gives the same answer")->check(kSeed)->capture_default_str();
  command.add_option("--max-tokens", flags.max_tokens, "Length of an answer; 0: to the end of the context")
      ->check(CLI::Range(0, 1 << 30))
      ->capture_default_str();
  command.add_option("--stop", flags.stop, "End before this text; may be given more than once");
}

Result<Answer> generate(Session& session, std::vector<text::TokenId> prompt, const SamplingFlags& flags,
                        const std::function<void(const std::string&)>& on_text, const std::atomic<bool>* stop,
                        std::optional<grammar::Matcher> constraint) {
  std::mutex mutex;
  std::condition_variable ended;
  bool done = false;
  Error failure;
  Answer answer;

  engine::Request request;
  request.prompt = std::move(prompt);
  request.sampling.temperature = flags.temperature;
  request.sampling.top_k = flags.top_k;
  request.sampling.top_p = flags.top_p;
  request.sampling.min_p = flags.min_p;
  request.sampling.seed = flags.seed;
  request.max_tokens = flags.max_tokens > 0 ? flags.max_tokens : engine::kNoLimit;
  request.stop = flags.stop;
  request.constraint = std::move(constraint);
  request.logprobs = true;  // for the ids
  request.on_delta = [&](engine::Delta&& delta) {
    for (const auto& token : delta.tokens) answer.tokens.push_back(token.id);
    answer.text += delta.text;
    if (!delta.text.empty()) on_text(delta.text);
    if (!delta.finish) return;
    std::lock_guard lock(mutex);
    answer.finish = *delta.finish;
    answer.stop_detail = delta.stop_detail;
    answer.usage = delta.usage;
    answer.timings = delta.timings;
    failure = delta.error;
    done = true;
    ended.notify_all();
  };
  auto id = session.engine->submit(std::move(request));
  if (!id) return id.error();
  std::unique_lock lock(mutex);
  bool cancelled = false;
  while (!done) {
    if (stop != nullptr && stop->load() && !cancelled) {
      cancelled = true;
      session.engine->cancel(*id);
    }
    ended.wait_for(lock, std::chrono::milliseconds(20));
  }
  if (answer.finish == FinishReason::error) return failure;
  return answer;
}

std::string speed_line(const Answer& a) {
  auto rate = [](int n, double seconds) {
    return seconds > 0 ? fmt::format("{:.0f} tok/s", n / seconds) : std::string("-");
  };
  return fmt::format("{} tokens in: {}; {} out: {} (ended by {})", a.usage.prompt_tokens,
                     rate(a.usage.prompt_tokens, a.timings.prefill_s), a.usage.completion_tokens,
                     rate(a.usage.completion_tokens - 1, a.timings.decode_s), finish_text(a.finish));
}

const char* finish_text(FinishReason reason) {
  switch (reason) {
    case FinishReason::stop_token: return "end token";
    case FinishReason::stop_string: return "stop string";
    case FinishReason::length: return "length";
    case FinishReason::context: return "full context";
    case FinishReason::cancelled: return "interruption";
    case FinishReason::deadline: return "deadline";
    case FinishReason::complete: return "complete answer";
    case FinishReason::error: return "error";
  }
  return "error";
}

}  // namespace unisono::apps

// An engine that answers every request with a given text, one byte a token, and a tokenizer whose tokens are bytes.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <map>
#include <mutex>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "serve/context.h"
#include "text/detokenizer.h"

namespace unisono::serve {

// 256 byte tokens in GPT-2's spelling, id = byte; 256 is <|end|>, 257 <|begin|>, which prompts begin with.
inline const text::Tokenizer& byte_tokenizer() {
  static const auto tokenizer = [] {
    static std::vector<std::string> names;
    for (int byte = 0, next = 256; byte < 256; byte++) {
      const bool plain = (byte >= 33 && byte <= 126) || (byte >= 161 && byte <= 172) || byte >= 174;
      const int code = plain ? byte : next++;
      if (code < 128) {
        names.push_back(std::string(1, static_cast<char>(code)));
      } else {
        names.push_back({static_cast<char>(0xC0 | code >> 6), static_cast<char>(0x80 | (code & 63))});
      }
    }
    names.insert(names.end(), {"<|end|>", "<|begin|>"});
    text::TokenizerSpec spec{.kind = text::TokenizerKind::byte_bpe, .pre = "gpt-2"};
    spec.tokens.assign(names.begin(), names.end());
    spec.types.assign(256, text::TokenType::normal);
    spec.types.insert(spec.types.end(), 2, text::TokenType::control);
    spec.bos = 257;
    spec.eos = 256;
    spec.add_bos = true;
    return text::Tokenizer::create(std::move(spec));
  }();
  return tokenizer.value();
}

class FakeEngine {
 public:
  std::string answer = "Hello \u00e9!";  // then the end token
  std::atomic<bool> hold{false};         // after the first token
  std::atomic<bool> full{false};         // submit() refuses
  std::atomic<int> fail_after{-1};       // tokens; then FinishReason::error
  const char* fault_of = "";             // the field that this error is about
  std::atomic<int> end_after{-1};        // tokens; then end_as
  engine::FinishReason end_as = engine::FinishReason::deadline;
  float logprob_by_choice = 0;           // each choice's tokens are likelier by this than those of the one before
  std::chrono::microseconds step{0};

  ~FakeEngine() {
    hold = false;
    stop_ = true;
    for (auto& thread : threads_) thread.join();
  }

  EngineDoor door() {
    return {.submit = [this](engine::Request request) { return submit(std::move(request)); },
            .cancel = [this](engine::RequestId id) { cancel(id); },
            .state = [this] { return state(); }};
  }

  std::vector<engine::Request> requests() {
    const std::lock_guard lock(mutex_);
    return requests_;
  }
  int running() const { return running_; }
  int cancelled() {
    const std::lock_guard lock(mutex_);
    return static_cast<int>(cancelled_.size());
  }

 private:
  Result<engine::RequestId> submit(engine::Request request) {
    if (full) return Error{"The queue is full; try again later.", "queue"};
    if (request.prompt.empty()) return Error{"The prompt has no tokens.", "prompt"};
    if (request.prompt.size() >= 2048) return Error{"The prompt has too many tokens for the context of 2048.", "prompt"};
    const std::lock_guard lock(mutex_);
    const auto id = static_cast<engine::RequestId>(requests_.size());
    requests_.push_back(request);
    running_++;
    threads_.emplace_back([this, id, request] { run(id, request); });
    return id;
  }
  void cancel(engine::RequestId id) {
    const std::lock_guard lock(mutex_);
    cancelled_.insert(id);
  }
  bool is_cancelled(engine::RequestId id) {
    const std::lock_guard lock(mutex_);
    return stop_ || cancelled_.contains(id);
  }
  engine::EngineState state() const {
    return {.running = running_, .max_waiting = 4, .blocks_free = 10, .blocks_total = 10, .steps = steps_};
  }

  void run(engine::RequestId id, const engine::Request& request) {
    text::Detokenizer detokenizer(byte_tokenizer(), request.show_special);
    engine::Usage usage{.prompt_tokens = static_cast<int>(request.prompt.size()), .cached_tokens = 2};
    for (size_t i = 0; i <= answer.size(); i++) {
      const bool last = i == answer.size();
      const engine::TokenId token = last ? 256 : static_cast<unsigned char>(answer[i]);
      engine::Delta delta;
      usage.completion_tokens++;
      steps_++;
      delta.usage = usage;
      if (i == 0 && request.prompt_logprobs) {
        for (size_t j = 1; j < request.prompt.size(); j++)
          delta.prompt.push_back(result(request.prompt[j], request.top_logprobs, -0.5f));
      }
      if (request.logprobs)
        delta.tokens.push_back(result(token, request.top_logprobs,
                                      -0.25f + logprob_by_choice * static_cast<float>(request.sampling.choice)));
      delta.text = last ? detokenizer.finish() : detokenizer.push(token);
      if (last) {
        delta.finish = engine::FinishReason::stop_token;
        delta.stop_token = token;
      } else if (usage.completion_tokens >= request.max_tokens) {
        delta.text += detokenizer.finish();
        delta.finish = engine::FinishReason::length;
      }
      if (end_after == static_cast<int>(i)) delta.finish = end_as;
      delta.timings = {.queue_s = 0.001, .prefill_s = 0.002, .decode_s = 0.0005 * usage.completion_tokens};
      if (fail_after == static_cast<int>(i)) {
        delta = {};
        delta.finish = engine::FinishReason::error;
        delta.error = {.message = "something broke", .subject = fault_of};
      }
      const bool ended = delta.finish.has_value();
      if (ended) running_--;
      request.on_delta(std::move(delta));
      if (ended) return;
      std::this_thread::sleep_for(step);
      while (hold && !is_cancelled(id)) std::this_thread::sleep_for(std::chrono::milliseconds(1));
      if (is_cancelled(id)) break;
    }
    engine::Delta delta;
    delta.finish = engine::FinishReason::cancelled;
    running_--;
    request.on_delta(std::move(delta));
  }

  static engine::TokenResult result(engine::TokenId token, int top, float logprob) {
    engine::TokenResult out{.id = token, .logprob = logprob, .rank = 1};
    for (int k = 0; k < top; k++)
      out.top.push_back({.id = (token + k) % 256, .logprob = -0.25f * static_cast<float>(k + 1)});
    return out;
  }

  std::mutex mutex_{};
  std::vector<engine::Request> requests_{};
  std::set<engine::RequestId> cancelled_{};
  std::vector<std::thread> threads_{};
  std::atomic<int> running_{0};
  std::atomic<uint64_t> steps_{0};
  std::atomic<bool> stop_{false};
};

}  // namespace unisono::serve

// Runs requests through an engine and keeps all that comes back, for comparing bit by bit.
#pragma once

#include <gtest/gtest.h>

#include <bit>
#include <condition_variable>
#include <cstdio>
#include <memory>
#include <mutex>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "engine/engine.h"
#include "engine/request.h"

namespace unisono::engine {

// One answer as its client saw it. Filled by the engine thread, read after wait().
class Collector {
 public:
  void take(Delta&& delta) {
    std::lock_guard lock(mutex_);
    EXPECT_FALSE(last_.has_value()) << "nothing comes after the end";
    EXPECT_TRUE(prompt_.empty() || delta.prompt.empty()) << "the prompt's results come once";
    EXPECT_TRUE(delta.prompt.empty() || n_deltas_ == 0) << "the prompt's results come first";
    n_deltas_++;
    text_ += delta.text;
    tokens_.insert(tokens_.end(), delta.tokens.begin(), delta.tokens.end());
    if (!delta.prompt.empty()) prompt_ = std::move(delta.prompt);
    if (delta.finish) last_ = std::move(delta);
    changed_.notify_all();
  }
  void wait() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return last_.has_value(); });
  }
  void wait_for_deltas(int n) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return last_.has_value() || n_deltas_ >= n; });
  }
  const Delta& last() const { return *last_; }
  const std::string& text() const { return text_; }
  const std::vector<TokenResult>& tokens() const { return tokens_; }
  const std::vector<TokenResult>& prompt() const { return prompt_; }

  // Everything that must not depend on load, written out with the bits of each number.
  std::string record() const {
    std::string out = text_ + "|" + std::to_string(static_cast<int>(*last_->finish)) + "|" + last_->stop_detail + "|" +
                      std::to_string(last_->usage.prompt_tokens) + "," + std::to_string(last_->usage.completion_tokens);
    for (const auto* results : {&prompt_, &tokens_}) {
      out += "\n";
      for (const TokenResult& r : *results) {
        out += bits(r.id, r.logprob);
        for (const TokenLogprob& t : r.top) out += "/" + bits(t.id, t.logprob);
        out += " ";
      }
    }
    return out;
  }

 private:
  static std::string bits(TokenId id, float logprob) {
    char text[32];
    std::snprintf(text, sizeof text, "%d:%08x", id, std::bit_cast<uint32_t>(logprob));
    return text;
  }
  std::mutex mutex_{};
  std::condition_variable changed_{};
  int n_deltas_ = 0;
  std::string text_{};
  std::vector<TokenResult> tokens_{}, prompt_{};
  std::optional<Delta> last_{};
};

struct Sent {
  RequestId id = 0;
  std::shared_ptr<Collector> collector = std::make_shared<Collector>();
};

inline Sent send(Engine& engine, Request request) {
  Sent sent;
  request.on_delta = [collector = sent.collector](Delta&& delta) { collector->take(std::move(delta)); };
  auto id = engine.submit(std::move(request));
  EXPECT_TRUE(id.ok()) << (id.ok() ? "" : id.error().message);
  if (id.ok()) sent.id = *id;
  return sent;
}

// Nobody is there, and everything is given back.
inline void expect_idle(Engine& engine) {
  engine.audit();
  const EngineState state = engine.state();
  EXPECT_EQ(state.running, 0);
  EXPECT_EQ(state.waiting, 0);
  EXPECT_EQ(state.blocks_free, state.blocks_total);
  EXPECT_EQ(state.window_blocks_free, state.window_blocks_total);
}

// None of them a control token of the tiny world.
inline std::vector<TokenId> random_tokens(std::mt19937& rng, int n) {
  std::vector<TokenId> tokens;
  for (int i = 0; i < n; i++) tokens.push_back(static_cast<TokenId>(3 + rng() % 285));
  return tokens;
}

}  // namespace unisono::engine

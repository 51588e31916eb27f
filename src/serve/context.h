// What the endpoints work with: one loaded model and its engine. Plain data, made by the program, never changed.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <string>

#include "engine/engine.h"
#include "serve/metrics.h"
#include "serve/openai_params.h"
#include "serve/tool_syntax.h"
#include "text/chat_template.h"
#include "text/tokenizer.h"

namespace unisono::serve {

// The engine as the endpoints see it, so that tests can put another in its place.
struct EngineDoor {
  std::function<Result<engine::RequestId>(engine::Request)> submit{};
  std::function<void(engine::RequestId)> cancel{};
  std::function<engine::EngineState()> state{};
};
EngineDoor door_to(engine::Engine& engine);

struct ServeContext {
  EngineDoor engine{};
  const text::Tokenizer* tokenizer = nullptr;         // outlives the server
  const text::ChatTemplate* chat_template = nullptr;  // null: the model has none, and doesn't chat
  ChatSyntax chat{};                                  // how its answers are taken apart
  Constraints* constraints = nullptr;                 // outlives the server; null: every answer is free
  Metrics* metrics = nullptr;                         // outlives the engine's work; null: nothing is counted
  bool log_bodies = false;                            // the log has requests' bodies, prompts included
  std::chrono::milliseconds longest_step{60'000};     // a loop that stands still for longer is ill
  ModelFacts model{};
  std::string fingerprint{};  // of weights, tokenizer, template and numerics
  std::string version{};      // of this program
  int64_t created = 0;        // when the model was loaded, seconds since the epoch
};

}  // namespace unisono::serve

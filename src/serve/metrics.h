// What the server counts and times, as Prometheus reads it. metrics.cpp is the only file that knows prometheus-cpp. Nothing
// here is called by the engine's thread: it counts for itself, and is read when somebody asks.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "engine/engine.h"

namespace unisono::serve {

// How long a client waited for its first token, in seconds, by what it waited for.
struct FirstTokenTimes {
  double text = 0;     // JSON, template, tokens
  double queue = 0;    // until the engine took it up
  double prefill = 0;  // until the token was chosen
  double write = 0;    // until it was given to the socket
};

// One answer that ended. Times in seconds.
struct AnswerTimes {
  engine::FinishReason finish{};
  engine::Usage usage{};
  engine::Timings timings{};
  double whole = 0;  // from the request's last byte to the answer's last token
};

class Metrics {
 public:
  // state: of the engine, asked for each text().
  Metrics(const std::string& model_name, std::function<engine::EngineState()> state);
  ~Metrics();

  // Of one thread at a time, never the engine's.
  void first_token(const FirstTokenTimes& times);
  void token_gap(double seconds);  // between two parts of an answer
  void tokens(int prompt, int cached, int generated);
  void ended(const AnswerTimes& answer);
  void responded(int status);

  // The text format 0.0.4; from any thread.
  std::string text() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

// A reason's name in metrics and logs: "stop_token".
const char* reason_name(engine::FinishReason reason);

}  // namespace unisono::serve

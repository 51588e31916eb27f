// One request's way through the server, as it is timed, counted and logged. Of the I/O thread; changes no answer.
#pragma once

#include <chrono>
#include <cstddef>
#include <vector>

#include "base/json.h"
#include "engine/request.h"
#include "serve/http_message.h"
#include "serve/metrics.h"

namespace unisono::serve {

class RequestCourse {
 public:
  // metrics: null, or what outlives this. One choice: one request of the engine.
  RequestCourse(Metrics* metrics, const Origin& origin, size_t n_choices);

  // The engine has it.
  void submitted();
  // A delta has come, and what it says is written: call both, came() first.
  void came(size_t choice, const engine::Delta& delta);
  void written(size_t choice);

  // For the log: tokens, how its answers ended, and microseconds.
  JsonObject notes() const;

 private:
  using Clock = std::chrono::steady_clock;
  struct Choice {
    Clock::time_point last{};  // when its last delta was made
    engine::Usage usage{};
    engine::Timings timings{};
    std::optional<engine::FinishReason> finish{};
    bool first_unwritten = false;
  };

  Metrics* const metrics_;
  const Clock::time_point received_;
  Clock::time_point submitted_{};
  std::vector<Choice> choices_;
};

}  // namespace unisono::serve

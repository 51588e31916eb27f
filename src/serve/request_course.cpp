#include "serve/request_course.h"

#include <algorithm>

namespace unisono::serve {

namespace {
double seconds(std::chrono::steady_clock::duration time) { return std::chrono::duration<double>(time).count(); }
int64_t microseconds(double time) { return static_cast<int64_t>(time * 1e6); }
}  // namespace

RequestCourse::RequestCourse(Metrics* metrics, const Origin& origin, size_t n_choices)
    : metrics_(metrics), received_(origin.received), submitted_(origin.received), choices_(n_choices) {}

void RequestCourse::submitted() { submitted_ = Clock::now(); }

void RequestCourse::came(size_t choice, const engine::Delta& delta) {
  Choice& mine = choices_[choice];
  const int fresh = std::max(0, delta.usage.completion_tokens - mine.usage.completion_tokens);
  const bool first = fresh > 0 && mine.usage.completion_tokens == 0;
  if (metrics_ != nullptr) {
    // A prompt counts when it has been computed, which its first token shows.
    metrics_->tokens(first ? delta.usage.prompt_tokens : 0, first ? delta.usage.cached_tokens : 0, fresh);
    if (fresh > 0 && mine.usage.completion_tokens > 0) metrics_->token_gap(seconds(delta.made - mine.last));
    if (delta.finish)
      metrics_->ended({.finish = *delta.finish,
                       .usage = delta.usage,
                       .timings = delta.timings,
                       .whole = seconds(delta.made - received_)});
  }
  mine.first_unwritten = first;
  mine.last = delta.made;
  mine.usage = delta.usage;
  mine.timings = delta.timings;
  mine.finish = delta.finish;
}

void RequestCourse::written(size_t choice) {
  Choice& mine = choices_[choice];
  if (!mine.first_unwritten || metrics_ == nullptr) return;
  mine.first_unwritten = false;
  metrics_->first_token({.text = seconds(submitted_ - received_),
                         .queue = mine.timings.queue_s,
                         .prefill = mine.timings.prefill_s,
                         .write = seconds(Clock::now() - mine.last) + mine.timings.decode_s});
}

JsonObject RequestCourse::notes() const {
  int completion = 0;
  JsonArray ends;
  for (const Choice& choice : choices_) {
    completion += choice.usage.completion_tokens;
    ends.push_back(choice.finish ? Json(reason_name(*choice.finish)) : Json(nullptr));
  }
  const Choice& first = choices_.front();
  return {{"prompt_tokens", first.usage.prompt_tokens},
          {"cached_tokens", first.usage.cached_tokens},
          {"completion_tokens", completion},
          {"finish", std::move(ends)},
          {"text_us", microseconds(seconds(submitted_ - received_))},
          {"queue_us", microseconds(first.timings.queue_s)},
          {"prefill_us", microseconds(first.timings.prefill_s)},
          {"decode_us", microseconds(first.timings.decode_s)}};
}

}  // namespace unisono::serve

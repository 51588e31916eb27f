// How a generation is told to its client in one API's shapes: as a stream of events, or whole. Both are made from the same
// deltas, so they say the same.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "engine/request.h"
#include "serve/context.h"
#include "serve/openai_params.h"

namespace unisono::serve {

class Answer {
 public:
  virtual ~Answer() = default;

  // A stream: events to send, in this order; part() may have nothing to say.
  virtual std::string opening() = 0;
  virtual std::string part(int choice, const engine::Delta& delta) = 0;
  virtual std::string closing(const engine::Usage& usage) = 0;

  // Whole: collect() every delta of every choice, then the body.
  virtual void collect(int choice, const engine::Delta& delta) = 0;
  virtual std::string whole(const engine::Usage& usage) = 0;
};

// What every object of an answer begins with.
struct AnswerHead {
  std::string id{};  // "chatcmpl-" and random digits
  std::string object{};
  int64_t created = 0;
  std::string model{};
  std::string fingerprint{};

  static AnswerHead make(const std::string& id_prefix, const ServeContext& context);
  JsonObject json(std::string_view object) const;
};

// What a client asked to be told.
struct AnswerOptions {
  int n_choices = 1;
  bool include_usage = false;
  bool continuous_usage = false;
  bool logprobs = false;
};

std::unique_ptr<Answer> make_chat_answer(const ServeContext& context, const AnswerOptions& options);

// echoes: the prompts' texts, one for each choice, or empty. prompts: their tokens, for log-probabilities of an echo.
struct Echo {
  std::string text{};
  bool first_hidden = false;  // the first token isn't part of the text: a BOS that the server put there
  std::vector<engine::TokenId> tokens{};
};
std::unique_ptr<Answer> make_completion_answer(const ServeContext& context, const AnswerOptions& options,
                                               std::vector<Echo> echoes);

// "stop" or "length", and what vLLM calls stop_reason: the stop string, the end token's id, "context", or null.
std::string finish_name(engine::FinishReason reason);
Json stop_reason(const engine::Delta& delta);
JsonObject usage_json(const engine::Usage& usage);

}  // namespace unisono::serve

// How a generation is told to its client in one API's shapes: as a stream of events, or whole. Both are made from the same
// deltas, so they say the same.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "engine/request.h"
#include "serve/answer_parser.h"
#include "serve/api_error.h"
#include "serve/context.h"
#include "serve/openai_params.h"

namespace unisono::serve {

class Answer {
 public:
  virtual ~Answer() = default;

  // A stream: events to send, in this order; part() may have nothing to say. Choices are counted over all prompts'
  // candidates.
  virtual std::string opening() = 0;
  virtual std::string part(int choice, const engine::Delta& delta) = 0;
  virtual std::string closing(const engine::Usage& usage) = 0;
  // What is said instead when there can't be an answer: as a stream's last events, or whole.
  virtual std::string failure(const ApiError& error);
  virtual HttpResponse refusal(const ApiError& error);

  // Whole: collect() every delta of every choice, then the body.
  virtual void collect(int choice, const engine::Delta& delta) = 0;
  virtual std::string whole(const engine::Usage& usage) = 0;
};

// What a client asked to be told.
struct AnswerOptions {
  int n_prompts = 1;
  int n = 1;           // choices of each prompt
  int candidates = 1;  // answers made to each prompt; above n: the n of the highest mean log-probability are the choices
  bool include_usage = false;
  bool continuous_usage = false;
  std::optional<int> logprobs{};         // tell the answer's tokens and of this many likeliest at each place
  std::optional<int> prompt_logprobs{};  // and the prompt's
  bool token_ids = false;
  bool timings = false;
  bool echo = false;          // the answer begins with the prompt
  bool show_special = false;  // control tokens appear in the text
};

// A prompt, as far as the answer tells it.
struct PromptFacts {
  std::vector<engine::TokenId> tokens{};
  std::string text{};
  bool first_hidden = false;  // the first token isn't part of the text: a BOS that the server put there
};

std::unique_ptr<Answer> make_chat_answer(const ServeContext& context, const AnswerOptions& options, PromptFacts prompt,
                                         std::shared_ptr<const AnswerReading> reading);
// prompts: options.n_prompts of them.
std::unique_ptr<Answer> make_completion_answer(const ServeContext& context, const AnswerOptions& options,
                                               std::vector<PromptFacts> prompts);

// told: what the response repeats of its request.
std::unique_ptr<Answer> make_response_answer(const ServeContext& context, const AnswerOptions& options, JsonObject told,
                                             std::shared_ptr<const AnswerReading> reading);
std::unique_ptr<Answer> make_message_answer(const ServeContext& context, std::shared_ptr<const AnswerReading> reading);

// "prefix" and random digits.
std::string random_id(std::string prefix);
// "stop" or "length", and what vLLM calls stop_reason: the stop string, the end token's id, "context", "deadline",
// "cancelled", or null.
std::string finish_name(engine::FinishReason reason);
Json stop_reason(const engine::Delta& delta);

}  // namespace unisono::serve

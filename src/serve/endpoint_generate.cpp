// The generating endpoints: prompts become tokens here, then the engine has them.
#include <functional>

#include "serve/answer.h"
#include "serve/anthropic_messages.h"
#include "serve/chat_plan.h"
#include "serve/endpoints.h"
#include "serve/generation.h"
#include "serve/openai_chat.h"
#include "serve/openai_completions.h"
#include "serve/openai_responses.h"
#include "serve/prompt_fit.h"
#include "text/detokenizer.h"

namespace unisono::serve {

namespace {

// What is to be told of the call. Changes its request so that the engine gives what that needs.
AnswerOptions options_of(GenerationCall& call, int n_prompts, int candidates) {
  engine::Request& request = call.request;
  AnswerOptions options{.n_prompts = n_prompts,
                        .n = call.n,
                        .candidates = candidates,
                        .include_usage = call.include_usage,
                        .continuous_usage = call.continuous_usage,
                        .prompt_logprobs = call.prompt_logprobs,
                        .token_ids = call.token_ids,
                        .timings = call.timings,
                        .show_special = request.show_special};
  if (request.logprobs) options.logprobs = request.top_logprobs;
  if (options.token_ids || options.candidates > options.n) request.logprobs = true;
  if (options.prompt_logprobs) {
    request.prompt_logprobs = true;
    request.top_logprobs = std::max(request.top_logprobs, *options.prompt_logprobs);
  }
  return options;
}

// One request for each candidate; they differ in their choice only.
void add_candidates(const GenerationCall& call, Tokens prompt, int max_tokens, const AnswerOptions& options,
                    std::vector<engine::Request>& out) {
  engine::Request request = call.request;
  request.prompt = std::move(prompt);
  request.max_tokens = max_tokens;
  for (int choice = 0; choice < options.candidates; choice++) {
    request.sampling.choice = static_cast<uint32_t>(choice);
    out.push_back(request);
    // What is told of the prompt is told once; only an echo is part of every choice.
    if (!options.echo) request.prompt_logprobs = false;
  }
}

// What makes a chat one of an API's: what it calls the messages, how it tells answers, and how errors.
struct ChatDress {
  const char* messages;
  std::function<std::unique_ptr<Answer>(const AnswerOptions&, PromptFacts, std::shared_ptr<const AnswerReading>)> answer;
  HttpResponse (*refuse)(const ApiError&) = error_response;
};

// From a chat's call to the engine, in whatever dress.
void run_chat(const ServeContext& context, Parsed<ChatCall> parsed, const std::shared_ptr<Reply>& reply,
              const ChatDress& dress) {
  if (const auto* error = std::get_if<ApiError>(&parsed)) return reply->send(dress.refuse(*error));
  ChatCall& call = std::get<ChatCall>(parsed);
  auto prompt = fit_chat(context, std::move(call.input), call.generation, dress.messages);
  if (const auto* error = std::get_if<ApiError>(&prompt)) return reply->send(dress.refuse(*error));
  auto& tokens = std::get<Tokens>(prompt);
  auto reading = plan_chat(context, call, tokens);
  if (const auto* error = std::get_if<ApiError>(&reading)) return reply->send(dress.refuse(*error));
  const AnswerOptions options = options_of(call.generation, 1, call.generation.n);
  Generation::Parts parts{.answer = dress.answer(options, {.tokens = tokens}, std::get<0>(std::move(reading))),
                          .per_prompt = options.candidates,
                          .stream = call.generation.stream,
                          .prompt_field = dress.messages};
  const int max_tokens = call.generation.max_tokens.value_or(engine::kNoLimit);
  add_candidates(call.generation, std::move(tokens), max_tokens, options, parts.requests);
  Generation::start(context, reply, std::move(parts));
}

}  // namespace

void chat_completions(const ServeContext& context, const Json& body, const std::shared_ptr<Reply>& reply) {
  run_chat(context, parse_chat(body, context.model), reply,
           {.messages = "messages", .answer = [&context](const auto& options, PromptFacts prompt, auto reading) {
              return make_chat_answer(context, options, std::move(prompt), std::move(reading));
            }});
}

void responses(const ServeContext& context, const Json& body, const std::shared_ptr<Reply>& reply) {
  auto parsed = parse_response(body, context.model);
  if (const auto* error = std::get_if<ApiError>(&parsed)) return reply->send(error_response(*error));
  ResponseCall& call = std::get<ResponseCall>(parsed);
  run_chat(context, std::move(call.chat), reply,
           {.messages = "input", .answer = [&](const auto& options, PromptFacts, auto reading) {
              return make_response_answer(context, options, std::move(call.told), std::move(reading));
            }});
}

void messages(const ServeContext& context, const Json& body, const std::shared_ptr<Reply>& reply) {
  run_chat(context, parse_messages(body, context.model), reply,
           {.messages = "messages",
            .answer = [&context](const auto&, PromptFacts,
                                 auto reading) { return make_message_answer(context, std::move(reading)); },
            .refuse = anthropic_error_response});
}

void completions(const ServeContext& context, const Json& body, const std::shared_ptr<Reply>& reply) {
  auto parsed = parse_completion(body, context.model);
  if (const auto* error = std::get_if<ApiError>(&parsed)) return reply->send(error_response(*error));
  CompletionCall& call = std::get<CompletionCall>(parsed);
  if (const auto& constraint = call.generation.constraint)
    if (const auto error = constrain(context, *constraint, call.generation.request)) return reply->send(error_response(*error));
  AnswerOptions options = options_of(call.generation, static_cast<int>(call.prompts.size()), call.best_of);
  options.echo = call.echo;
  const int max_tokens = *call.generation.max_tokens;
  Generation::Parts parts{.per_prompt = options.candidates,
                          .stream = call.generation.stream,
                          .prompt_only = max_tokens == 0,
                          .prompt_field = "prompt"};
  std::vector<PromptFacts> facts;
  for (Prompt& prompt : call.prompts) {
    if (reply->gone()) return;
    const auto* text = std::get_if<std::string>(&prompt);
    const bool has_bos = text && context.tokenizer->adds_bos();
    Tokens tokens = text ? context.tokenizer->encode(*text, true, true) : std::get<Tokens>(std::move(prompt));
    const size_t n_given = tokens.size();
    if (const auto error = fit_tokens(context, tokens, has_bos, call.generation, "prompt"))
      return reply->send(error_response(*error));
    facts.push_back({.tokens = tokens, .first_hidden = has_bos});
    if (call.echo) {
      const bool as_given = text && tokens.size() == n_given;
      const Tokens shown(tokens.begin() + (has_bos ? 1 : 0), tokens.end());
      facts.back().text = as_given ? *text : text::detokenize(*context.tokenizer, shown, true);
    }
    add_candidates(call.generation, std::move(tokens), std::max(max_tokens, 1), options, parts.requests);
  }
  parts.answer = make_completion_answer(context, options, std::move(facts));
  Generation::start(context, reply, std::move(parts));
}

}  // namespace unisono::serve

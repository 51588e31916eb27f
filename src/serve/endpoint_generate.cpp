// The two generating endpoints: prompts become tokens here, then the engine has them.
#include <optional>

#include "serve/answer.h"
#include "serve/chat_prompt.h"
#include "serve/endpoints.h"
#include "serve/generation.h"
#include "serve/openai_chat.h"
#include "serve/openai_completions.h"
#include "text/detokenizer.h"

namespace unisono::serve {

namespace {

// n requests that differ in their choice only.
void add_choices(const GenerationCall& call, std::vector<engine::TokenId> prompt, int max_tokens,
                 std::vector<engine::Request>& out) {
  engine::Request request = call.request;
  request.prompt = std::move(prompt);
  request.max_tokens = max_tokens;
  for (int choice = 0; choice < call.n; choice++) {
    request.sampling.choice = static_cast<uint32_t>(choice);
    out.push_back(request);
  }
}

// The constraint, ready to be matched, in the requests' common part.
std::optional<ApiError> add_constraint(const ServeContext& context, GenerationCall& call) {
  if (!call.constraint) return {};
  if (context.constraints == nullptr)
    return ApiError{.message = "This server gives free answers only.", .param = call.constraint->field, .code = "unsupported_value"};
  auto matcher = context.constraints->matcher(*call.constraint);
  if (const auto* error = std::get_if<ApiError>(&matcher)) return *error;
  call.request.constraint = std::get<grammar::Matcher>(std::move(matcher));
  return {};
}

// Refuses what can't fit before it is copied for every choice.
std::optional<ApiError> check_length(const ServeContext& context, size_t prompt_size, const char* field) {
  const auto room = static_cast<size_t>(context.model.max_context);
  if (prompt_size < room) return {};
  return ApiError{.message = "The prompt has " + std::to_string(prompt_size) + " tokens, but the context holds " +
                             std::to_string(room) + ", the answer included; shorten the prompt.",
                  .param = field,
                  .code = "context_length_exceeded"};
}

AnswerOptions options_of(const GenerationCall& call, size_t n_choices) {
  return {.n_choices = static_cast<int>(n_choices),
          .include_usage = call.include_usage,
          .continuous_usage = call.continuous_usage,
          .logprobs = call.request.logprobs};
}

}  // namespace

void chat_completions(const ServeContext& context, const JsonObject& body, const std::shared_ptr<Reply>& reply) {
  auto parsed = parse_chat(body, context.model);
  if (const auto* error = std::get_if<ApiError>(&parsed)) return reply->send(error_response(*error));
  ChatCall& call = std::get<ChatCall>(parsed);
  if (const auto error = add_constraint(context, call.generation)) return reply->send(error_response(*error));
  auto prompt = chat_prompt(context, call.input);
  if (const auto* error = std::get_if<ApiError>(&prompt)) return reply->send(error_response(*error));
  auto& tokens = std::get<std::vector<engine::TokenId>>(prompt);
  if (const auto error = check_length(context, tokens.size(), "messages")) return reply->send(error_response(*error));
  const int room = context.model.max_context - static_cast<int>(tokens.size());
  Generation::Parts parts{
      .choices_per_prompt = call.generation.n, .stream = call.generation.stream, .prompt_field = "messages"};
  add_choices(call.generation, std::move(tokens), call.generation.max_tokens.value_or(room), parts.requests);
  parts.answer = make_chat_answer(context, options_of(call.generation, parts.requests.size()));
  Generation::start(context, reply, std::move(parts));
}

void completions(const ServeContext& context, const JsonObject& body, const std::shared_ptr<Reply>& reply) {
  auto parsed = parse_completion(body, context.model);
  if (const auto* error = std::get_if<ApiError>(&parsed)) return reply->send(error_response(*error));
  CompletionCall& call = std::get<CompletionCall>(parsed);
  if (const auto error = add_constraint(context, call.generation)) return reply->send(error_response(*error));
  const int max_tokens = *call.generation.max_tokens;
  Generation::Parts parts{.choices_per_prompt = call.generation.n,
                          .stream = call.generation.stream,
                          .prompt_only = max_tokens == 0,
                          .prompt_field = "prompt"};
  std::vector<Echo> echoes;
  for (Prompt& prompt : call.prompts) {
    if (reply->gone()) return;
    const auto* text = std::get_if<std::string>(&prompt);
    auto tokens =
        text ? context.tokenizer->encode(*text, true, true) : std::get<std::vector<engine::TokenId>>(std::move(prompt));
    if (const auto error = check_length(context, tokens.size(), "prompt")) return reply->send(error_response(*error));
    if (call.echo) {
      const Echo echo{.text = text ? *text : text::detokenize(*context.tokenizer, tokens, true),
                      .first_hidden = text && context.tokenizer->adds_bos(),
                      .tokens = tokens};
      echoes.insert(echoes.end(), static_cast<size_t>(call.generation.n), echo);
    }
    add_choices(call.generation, std::move(tokens), std::max(max_tokens, 1), parts.requests);
  }
  parts.answer = make_completion_answer(context, options_of(call.generation, parts.requests.size()), std::move(echoes));
  Generation::start(context, reply, std::move(parts));
}

}  // namespace unisono::serve

// /tokenize and /detokenize in vLLM's shapes, /apply-template in llama.cpp's, and Anthropic's count of a message's tokens.
#include "serve/anthropic_messages.h"
#include "serve/chat_prompt.h"
#include "serve/endpoints.h"
#include "serve/logprobs.h"
#include "serve/openai_chat.h"
#include "serve/openai_completions.h"
#include "text/detokenizer.h"

namespace unisono::serve {

namespace {

HttpResponse tokens_response(const ServeContext& context, const std::vector<engine::TokenId>& tokens, bool with_texts) {
  JsonArray ids, texts;
  ids.reserve(tokens.size());
  for (const engine::TokenId id : tokens) {
    ids.emplace_back(id);
    if (with_texts) texts.emplace_back(token_text(*context.tokenizer, id));
  }
  JsonObject body{{"count", tokens.size()}, {"max_model_len", context.model.max_context}, {"tokens", std::move(ids)}};
  if (with_texts) body["token_strs"] = std::move(texts);
  return {.body = to_text(body)};
}

}  // namespace

void tokenize(const ServeContext& context, const Json& body, const std::shared_ptr<Reply>& reply) {
  Fields fields(body.get_object());
  check_model(fields, context.model);
  const bool with_texts = fields.boolean("return_token_strs").value_or(false);
  if (!body.get_object().contains("messages")) {
    const auto prompt = fields.needed_string("prompt");
    const bool add_special = fields.boolean("add_special_tokens").value_or(true);
    if (const auto error = fields.finish()) return reply->send(error_response(*error));
    return reply->send(tokens_response(context, context.tokenizer->encode(*prompt, add_special, true), with_texts));
  }
  ToolCall tools;
  text::ChatInput input = read_chat_input(fields, tools);
  if (const auto error = fields.finish()) return reply->send(error_response(*error));
  const auto prompt = chat_prompt(context, std::move(input));
  if (const auto* error = std::get_if<ApiError>(&prompt)) return reply->send(error_response(*error));
  reply->send(tokens_response(context, std::get<std::vector<engine::TokenId>>(prompt), with_texts));
}

void count_tokens(const ServeContext& context, const Json& body, const std::shared_ptr<Reply>& reply) {
  auto parsed = parse_count_tokens(body, context.model);
  if (const auto* error = std::get_if<ApiError>(&parsed)) return reply->send(anthropic_error_response(*error));
  const auto prompt = chat_prompt(context, std::move(std::get<ChatCall>(parsed).input));
  if (const auto* error = std::get_if<ApiError>(&prompt)) return reply->send(anthropic_error_response(*error));
  const size_t n = std::get<std::vector<engine::TokenId>>(prompt).size();
  reply->send({.body = to_text(JsonObject{{"input_tokens", n}})});
}

void apply_template(const ServeContext& context, const Json& body, const std::shared_ptr<Reply>& reply) {
  Fields fields(body.get_object());
  check_model(fields, context.model);
  ToolCall tools;
  text::ChatInput input = read_chat_input(fields, tools);
  if (const auto error = fields.finish()) return reply->send(error_response(*error));
  const auto text = chat_text(context, std::move(input));
  if (const auto* error = std::get_if<ApiError>(&text)) return reply->send(error_response(*error));
  reply->send({.body = to_text(JsonObject{{"prompt", std::get<text::MarkedText>(text).text}})});
}

void detokenize(const ServeContext& context, const Json& body, const std::shared_ptr<Reply>& reply) {
  Fields fields(body.get_object());
  check_model(fields, context.model);
  std::vector<engine::TokenId> ids;
  const JsonArray* array = fields.array("tokens");
  if (array) {
    ids = read_token_ids(fields, "tokens", *array, context.model);
  } else {
    fields.required("tokens");
  }
  if (const auto error = fields.finish()) return reply->send(error_response(*error));
  reply->send({.body = to_text(JsonObject{{"prompt", text::detokenize(*context.tokenizer, ids, true)}})});
}

}  // namespace unisono::serve

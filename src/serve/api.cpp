#include "serve/api.h"

#include "serve/anthropic_messages.h"
#include "serve/endpoints.h"

namespace unisono::serve {

namespace {

constexpr int kMaxNesting = 256;  // of a body: schemas may be nested 200 deep

// How an API tells errors.
using Refuse = HttpResponse (*)(const ApiError&);
Refuse errors_at(std::string_view path) {
  return path.starts_with("/v1/messages") ? anthropic_error_response : error_response;
}

// One of the endpoints that take a JSON object.
Handler json_endpoint(const ServeContext& context, JsonEndpoint endpoint, Refuse refuse) {
  return [&context, endpoint, refuse](const HttpRequest& request, const std::shared_ptr<Reply>& reply) {
    // Demanding the type keeps web pages of other origins from posting here unasked: browsers ask first for this one.
    if (!request.header("Content-Type").starts_with("application/json")) {
      return reply->send(refuse({.status = 415,
                                 .message = "The request needs the header 'Content-Type: application/json'.",
                                 .code = "unsupported_media_type"}));
    }
    if (context.log_bodies) reply->note({{"body", request.body}});
    const auto body = parse_json(request.body, kMaxNesting);
    if (!body) return reply->send(refuse({.message = body.error().message, .code = "invalid_json"}));
    if (!body->is_object())
      return reply->send(
          refuse({.message = "The body must be a JSON object, not " + shown(*body) + ".", .code = "invalid_type"}));
    endpoint(context, *body, reply);
  };
}

}  // namespace

Router make_api(const ServeContext& context) {
  Router router;
  router.tell_errors_as([](std::string_view path, const ApiError& error) { return errors_at(path)(error); });
  const auto post = [&](const char* path, JsonEndpoint endpoint) {
    router.add("POST", path, Where::worker, json_endpoint(context, endpoint, errors_at(path)));
  };
  post("/v1/chat/completions", chat_completions);
  post("/v1/completions", completions);
  post("/v1/responses", responses);
  post("/v1/messages", messages);
  post("/v1/messages/count_tokens", count_tokens);
  post("/tokenize", tokenize);
  post("/detokenize", detokenize);
  post("/apply-template", apply_template);

  const auto get = [&](const char* path, auto answer) { router.add("GET", path, Where::io, answer); };
  get("/v1/models", [&context](const HttpRequest&, const auto& reply) { reply->send({.body = models_body(context)}); });
  get("/v1/models/*",
      [&context](const HttpRequest& request, const auto& reply) { reply->send(one_model(context, request.tail)); });
  get("/health", [&context](const HttpRequest&, const auto& reply) { reply->send(health(context)); });
  if (context.metrics != nullptr)
    router.add("GET", "/metrics", Where::worker, [&context](const HttpRequest&, const auto& reply) {
      reply->send({.content_type = "text/plain; version=0.0.4; charset=utf-8", .body = context.metrics->text()});
    });
  get("/version", [&context](const HttpRequest&, const auto& reply) { reply->send({.body = version_body(context)}); });
  return router;
}

}  // namespace unisono::serve

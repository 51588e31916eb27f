#include "serve/api.h"

#include <boost/beast/core/string.hpp>

#include "serve/anthropic_messages.h"
#include "serve/endpoints.h"
#include "text/unicode.h"

namespace unisono::serve {

namespace {

constexpr int kMaxNesting = 256;  // of a body: schemas may be nested 200 deep

// How an API tells errors.
using Refuse = HttpResponse (*)(const ApiError&);
Refuse errors_at(std::string_view path) {
  return path.starts_with("/v1/messages") ? anthropic_error_response : error_response;
}

// "application/json", in whatever case and with whatever parameters.
bool is_json(std::string_view content_type) {
  std::string_view type = content_type.substr(0, content_type.find(';'));
  while (type.ends_with(' ') || type.ends_with('\t')) type.remove_suffix(1);
  return boost::beast::iequals(type, "application/json");
}

// For the log, which is JSON: what isn't UTF-8 as U+FFFD.
std::string readable(std::string_view bytes) {
  std::string out;
  while (!bytes.empty()) {
    const text::Utf8Step step = text::next_step(bytes);
    out += step.kind == text::Utf8Step::Kind::character ? bytes.substr(0, step.bytes) : text::kReplacement;
    bytes.remove_prefix(step.bytes);
  }
  return out;
}

// One of the endpoints that take a JSON object.
Handler json_endpoint(const ServeContext& context, JsonEndpoint endpoint, Refuse refuse) {
  return [&context, endpoint, refuse](const HttpRequest& request, const std::shared_ptr<Reply>& reply) {
    // Demanding the type keeps web pages of other origins from posting here unasked: browsers ask first for this one.
    if (!is_json(request.header("Content-Type"))) {
      return reply->send(refuse({.status = 415,
                                 .message = "The request needs the header 'Content-Type: application/json'.",
                                 .code = "unsupported_media_type"}));
    }
    const std::string_view coding = request.header("Content-Encoding");
    if (!coding.empty() && !boost::beast::iequals(coding, "identity")) {
      return reply->send(refuse({.status = 415,
                                 .message = "The body can't be read in the coding '" + readable(coding) +
                                            "'; send it without 'Content-Encoding'.",
                                 .code = "unsupported_media_type"}));
    }
    if (context.log_bodies) reply->note({{"body", readable(request.body)}});
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

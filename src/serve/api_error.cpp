#include "serve/api_error.h"

#include "base/json.h"

namespace unisono::serve {

namespace {

const char* type_of(int status) {
  if (status == 401) return "authentication_error";
  if (status == 429) return "rate_limit_error";
  return status < 500 ? "invalid_request_error" : "server_error";
}

Json text_or_null(const std::string& text) { return text.empty() ? Json(nullptr) : Json(text); }

}  // namespace

std::string error_body(const ApiError& error) {
  const JsonObject inner{{"message", error.message},
                         {"type", type_of(error.status)},
                         {"param", text_or_null(error.param)},
                         {"code", text_or_null(error.code)}};
  return to_text(JsonObject{{"error", inner}});
}

HttpResponse error_response(const ApiError& error) {
  HttpResponse response{.status = error.status, .body = error_body(error)};
  if (error.status == 429 || error.status == 503) response.headers.emplace_back("Retry-After", "1");
  if (error.status == 401) response.headers.emplace_back("WWW-Authenticate", "Bearer");
  return response;
}

}  // namespace unisono::serve

#include "serve/api_error.h"

#include "base/json.h"
#include "text/unicode.h"

namespace unisono::serve {

namespace {

const char* type_of(int status) {
  if (status == 401) return "authentication_error";
  if (status == 429) return "rate_limit_error";
  return status < 500 ? "invalid_request_error" : "server_error";
}

Json text_or_null(const std::string& text) { return text.empty() ? Json(nullptr) : Json(text); }

void replace_all(std::string& text, std::string_view from, std::string_view to) {
  for (size_t at = text.find(from); at != text.npos; at = text.find(from, at + to.size()))
    text.replace(at, from.size(), to);
}

}  // namespace

ApiError renamed(ApiError error, std::initializer_list<std::pair<std::string_view, std::string_view>> names) {
  for (const auto& [from, to] : names) {
    replace_all(error.param, from, to);
    replace_all(error.message, from, to);
  }
  return error;
}

std::string shortened(std::string_view text) {
  constexpr size_t kBegin = 1000, kEnd = 300;
  if (text.size() <= kBegin + kEnd) return std::string(text);
  size_t begin = kBegin, end = text.size() - kEnd;
  while (begin > 0 && text::is_continuation(text[begin])) begin--;
  while (end < text.size() && text::is_continuation(text[end])) end++;
  return std::string(text.substr(0, begin)) + "..." + std::string(text.substr(end));
}

std::string error_body(const ApiError& error) {
  const JsonObject inner{{"message", shortened(error.message)},
                         {"type", type_of(error.status)},
                         {"param", text_or_null(shortened(error.param))},
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

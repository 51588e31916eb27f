// What a client is told when its request isn't honoured: OpenAI's error object.
#pragma once

#include <initializer_list>
#include <string>
#include <string_view>
#include <utility>
#include <variant>

#include "serve/http_message.h"

namespace unisono::serve {

struct ApiError {
  int status = 400;
  std::string message{};  // a sentence that says what to change
  std::string param{};    // the field it is about; empty: null
  std::string code{};     // for programs; empty: null
};

// A value, or why there is none.
template <class T>
using Parsed = std::variant<T, ApiError>;

// An error about fields that were translated, under the names that the client gave them: each first text of a pair becomes
// the second, in this order.
ApiError renamed(ApiError error, std::initializer_list<std::pair<std::string_view, std::string_view>> names);

// A sentence or a field's name as it is told. Both may hold names that the client wrote, of whatever length: of more than
// 1300 bytes the middle is left out.
std::string shortened(std::string_view text);

// {"error": {"message", "type", "param", "code"}}
std::string error_body(const ApiError& error);
HttpResponse error_response(const ApiError& error);

}  // namespace unisono::serve

// What a client is told when its request isn't honoured: OpenAI's error object.
#pragma once

#include <string>
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

// {"error": {"message", "type", "param", "code"}}
std::string error_body(const ApiError& error);
HttpResponse error_response(const ApiError& error);

}  // namespace unisono::serve

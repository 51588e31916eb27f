// The body of POST /v1/responses, checked and translated: it is a chat in another dress, and becomes a ChatCall.
#pragma once

#include "serve/openai_chat.h"

namespace unisono::serve {

struct ResponseCall {
  ChatCall chat{};
  JsonObject told{};  // the fields of the request that a response repeats, with their defaults
};

Parsed<ResponseCall> parse_response(const Json& body, const ModelFacts& model);

}  // namespace unisono::serve

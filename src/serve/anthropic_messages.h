// The bodies of Anthropic's POST /v1/messages and /v1/messages/count_tokens, checked and translated: they are chats in
// another dress, and become ChatCalls.
#pragma once

#include "serve/openai_chat.h"

namespace unisono::serve {

Parsed<ChatCall> parse_messages(const Json& body, const ModelFacts& model);
// The fields that make a prompt; those of an answer are taken too, as clients send the same body to both.
Parsed<ChatCall> parse_count_tokens(const Json& body, const ModelFacts& model);

// {"type": "error", "error": {"type", "message"}}
std::string anthropic_error_body(const ApiError& error);
HttpResponse anthropic_error_response(const ApiError& error);

}  // namespace unisono::serve

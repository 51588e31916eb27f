// What becomes of a chat's tools, reasoning and constraint once its prompt is known: what the answer may be, and how it is
// read. The one way for every endpoint that answers chats.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "serve/answer_parser.h"
#include "serve/api_error.h"
#include "serve/context.h"
#include "serve/openai_chat.h"

namespace unisono::serve {

// Constrains a request. Refused, by name: what can't be enforced.
std::optional<ApiError> constrain(const ServeContext& context, const ConstraintCall& call, engine::Request& request);

// Constrains call.generation.request. Refused, by name: what of the tools or the constraint can't be enforced.
Parsed<std::shared_ptr<const AnswerReading>> plan_chat(const ServeContext& context, ChatCall& call,
                                                       const std::vector<engine::TokenId>& prompt);

}  // namespace unisono::serve

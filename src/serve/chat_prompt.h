// Messages to the prompt's tokens, for every endpoint that takes messages.
#pragma once

#include <vector>

#include "serve/api_error.h"
#include "serve/context.h"

namespace unisono::serve {

// The text of the prompt. Refused: models without a template, and what the template itself refuses, in its words.
Parsed<text::MarkedText> chat_text(const ServeContext& context, text::ChatInput input);
// Its tokens.
Parsed<std::vector<engine::TokenId>> chat_prompt(const ServeContext& context, text::ChatInput input);

}  // namespace unisono::serve

// A prompt and the context: how long the one may be, and what is cut from a longer one when the client wants that.
#pragma once

#include <string>
#include <vector>

#include "serve/api_error.h"
#include "serve/context.h"
#include "serve/openai_params.h"
#include "text/chat_template.h"

namespace unisono::serve {

using Tokens = std::vector<engine::TokenId>;

// The tokens of a chat's prompt. Too long, it is cut as call.truncation says: by whole turns from the oldest, a turn being
// a user's message with all that follows it, where the system's messages at the beginning and the last turn stay; or to its
// last tokens. What doesn't fit then is refused with both numbers; `field` is what the API calls the messages.
Parsed<Tokens> fit_chat(const ServeContext& context, text::ChatInput input, const GenerationCall& call,
                        const std::string& field);

// The same for a prompt of completions, which is cut to its last tokens. has_bos: its first token was put there by the
// tokenizer, and stays. Nothing: it fits.
std::optional<ApiError> fit_tokens(const ServeContext& context, Tokens& tokens, bool has_bos, const GenerationCall& call,
                                   const std::string& field);

}  // namespace unisono::serve

// The body of POST /v1/chat/completions, checked and taken apart.
#pragma once

#include "serve/openai_params.h"
#include "text/chat_template.h"

namespace unisono::serve {

struct ChatCall {
  GenerationCall generation{};
  text::ChatInput input{};
};

Parsed<ChatCall> parse_chat(const Json& body, const ModelFacts& model);

// The fields that make a prompt: messages, add_generation_prompt, continue_final_message, chat_template_kwargs. Each
// message becomes what templates know: role and content as strings, text parts joined by a line break, the arguments of
// tool calls as objects.
text::ChatInput read_chat_input(Fields& fields);

}  // namespace unisono::serve

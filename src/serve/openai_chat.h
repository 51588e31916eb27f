// The body of POST /v1/chat/completions, checked and taken apart.
#pragma once

#include <optional>
#include <string>

#include "serve/openai_params.h"
#include "serve/tools.h"
#include "text/chat_template.h"

namespace unisono::serve {

struct ChatCall {
  GenerationCall generation{};
  text::ChatInput input{};
  ToolCall tools{};
  bool split_reasoning = true;  // reasoning has a field of its own; false: it stays in the content
  bool tell_reasoning = true;
  // The answer must be able to begin with thoughts, of up to so many tokens. field: what asks for it.
  struct Thinking {
    std::string field{};
    std::optional<int> budget{};
  };
  std::optional<Thinking> thinking{};
};

Parsed<ChatCall> parse_chat(const Json& body, const ModelFacts& model);

// The fields that make a prompt: messages, tools and how they may be called, add_generation_prompt, continue_final_message,
// chat_template_kwargs. Messages are checked and stay as they are; what templates know is the text room's.
text::ChatInput read_chat_input(Fields& fields, ToolCall& tools);

}  // namespace unisono::serve

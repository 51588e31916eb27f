// What an answer to a chat may be: its reasoning, then free or constrained content, or calls of tools in the model's own
// syntax, whose arguments always belong to the tool's schema.
#pragma once

#include <optional>

#include "base/result.h"
#include "grammar/shape.h"
#include "serve/tool_syntax.h"
#include "serve/tools.h"

namespace unisono::serve {

// Where the prompt leaves the model with regard to reasoning.
enum class Reasoning : uint8_t {
  none,   // it doesn't reason, or is told not to
  maybe,  // it may begin with it
  open,   // it is in the midst of it
};
// prompt: the rendered messages.
Reasoning reasoning_after(std::string_view prompt, const ReasoningSyntax* syntax);

// content: what the content must be; nothing: anything. Nothing: the answer is free. Refused, by name: what of a tool's
// schema the family's syntax can't hold.
Result<std::optional<grammar::Shape>> answer_shape(const ChatSyntax& syntax, const ToolCall& tools, Reasoning reasoning,
                                                   const std::optional<grammar::Shape>& content);

}  // namespace unisono::serve

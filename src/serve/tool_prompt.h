// Tools for a model whose chat template knows none: what they are is told in the system's message, and a conversation's
// calls and results become text of its messages.
#pragma once

#include <string_view>

#include "serve/tool_syntax.h"
#include "text/chat_template.h"

namespace unisono::serve {

// Rewrites the messages and takes the tools out. syntax: one whose arguments are JSON.
void write_tools(text::ChatInput& input, const ToolSyntax& syntax, std::string_view chat_template);

}  // namespace unisono::serve

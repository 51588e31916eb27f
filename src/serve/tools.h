// The fields of a chat that are about tools: which there are, which may be called, and how often.
#pragma once

#include <string>
#include <vector>

#include "serve/fields.h"

namespace unisono::serve {

struct Tool {
  std::string name{};
  JsonObject parameters{};  // a schema of type object
  std::string where{};      // the field that holds it
};

struct ToolCall {
  enum class Choice : uint8_t { none, free, required };
  Json listed = nullptr;         // all tools as the client wrote them, for the model to read; null: none
  std::vector<Tool> callable{};  // those that may be called; empty with Choice::none
  Choice choice = Choice::none;
  bool parallel = true;
};

// tools, tool_choice, parallel_tool_calls. Mistakes are left in `fields`.
ToolCall read_tools(Fields& fields);

}  // namespace unisono::serve

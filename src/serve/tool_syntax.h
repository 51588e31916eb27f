// How the families of models write a call of a tool and their reasoning: a table. It knows texts only; what is made of them
// is in answer_shape.h (what may be written) and answer_parser.h (what was written).
#pragma once

#include <array>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "text/tokenizer.h"

namespace unisono::serve {

// Calls are written
//   trigger first before_name NAME before_arguments ARGUMENTS after_arguments { between before_name NAME ... } last
struct ToolSyntax {
  enum class Values : uint8_t {
    json,        // the arguments are a JSON object
    bare,        // {key:value,...}: bare keys, strings between two `quote`s, otherwise as JSON
    parameters,  // each argument is parameter_begin KEY parameter_middle VALUE parameter_end; strings stand bare
    harmony,     // JSON in a message to `functions.NAME`, among messages of other channels
  };
  std::string_view name;                     // for --tool-syntax
  std::array<std::string_view, 2> known_by;  // both stand in the chat templates of this family
  std::string_view trigger{};                // ends free text; empty: calls can only begin the answer
  std::string_view first{}, before_name{}, before_arguments{}, after_arguments{}, between{}, last{};
  Values values = Values::json;
  bool parallel = true;    // several calls in one answer
  bool short_ids = false;  // call ids are nine letters and digits
  std::string_view before_id{}, after_id{};  // an id that the model may give to the call, after the arguments
  std::string_view quote{};
  std::string_view parameter_begin{}, parameter_middle{}, parameter_end{};
};

// All that a model may write of it, names and values apart; some are empty.
std::vector<std::string_view> texts_of(const ToolSyntax& syntax);

// The last one is for every template: the server explains it to the model.
std::span<const ToolSyntax> tool_syntaxes();
// Null: there is none of this name.
const ToolSyntax* tool_syntax_named(std::string_view name);
const ToolSyntax& tool_syntax_of(std::string_view chat_template);

// What stands around reasoning, before the answer proper.
struct ReasoningSyntax {
  std::string_view begin, end;
};
// Null: the template knows of none.
const ReasoningSyntax* reasoning_syntax_of(std::string_view chat_template);

// One model's, by its chat template.
struct ChatSyntax {
  const ToolSyntax* tools = tool_syntax_named("generic");  // never null
  const ReasoningSyntax* reasoning = nullptr;
  bool told = false;                   // the template tells the model of its tools; else the server does, in a message
  std::vector<text::TokenId> marks{};  // what of the syntax is a control token of the vocabulary
};
// tools: of this name instead, one of tool_syntaxes(); empty: by the template. A syntax in which the server couldn't write
// a conversation's calls is taken only where the template does; otherwise it is the generic one.
ChatSyntax chat_syntax(std::string_view chat_template, const text::Tokenizer& tokenizer, std::string_view tools = "");

}  // namespace unisono::serve

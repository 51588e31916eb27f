#include "serve/tool_syntax.h"

#include <algorithm>

namespace unisono::serve {

namespace {

using Values = ToolSyntax::Values;

using KnownBy = decltype(ToolSyntax::known_by);

// Each call a JSON object between two tags.
constexpr ToolSyntax tagged(std::string_view name, KnownBy known_by) {
  return {.name = name,
          .known_by = known_by,
          .trigger = "<tool_call>",
          .first = "\n",
          .before_name = "{\"name\": \"",
          .before_arguments = "\", \"arguments\": ",
          .after_arguments = "}\n</tool_call>",
          .between = "\n<tool_call>\n",
          .last = ""};
}
// All calls in one JSON array.
constexpr ToolSyntax listed(std::string_view name, KnownBy known_by, std::string_view trigger, std::string_view last) {
  return {.name = name,
          .known_by = known_by,
          .trigger = trigger,
          .first = "[",
          .before_name = "{\"name\": \"",
          .before_arguments = "\", \"arguments\": ",
          .after_arguments = "}",
          .between = ", ",
          .last = last};
}

// In the order in which templates are tried. The texts are what each family's own chat template writes for calls in a
// conversation, so that a model's answer and its history look alike.
constexpr ToolSyntax kSyntaxes[] = {
    {.name = "gpt-oss",
     .known_by = {"<|channel|>", "<|call|>"},
     .trigger = "",
     .first = "",
     .before_name = " to=functions.",
     .before_arguments = "<|message|>",
     .after_arguments = "",
     .between = "",
     .last = "",
     .values = Values::harmony,
     .parallel = false},
    {.name = "gemma4",
     .known_by = {"<|tool_call>", "call:"},
     .trigger = "<|tool_call>",
     .first = "",
     .before_name = "call:",
     .before_arguments = "",
     .after_arguments = "<tool_call|>",
     .between = "<|tool_call>",
     .last = "",
     .values = Values::bare,
     .quote = "<|\"|>"},
    {.name = "functiongemma",
     .known_by = {"<start_function_call>", "call:"},
     .trigger = "<start_function_call>",
     .first = "",
     .before_name = "call:",
     .before_arguments = "",
     .after_arguments = "<end_function_call>",
     .between = "<start_function_call>",
     .last = "",
     .values = Values::bare,
     .quote = "<escape>"},
    {.name = "mistral-args",
     .known_by = {"[TOOL_CALLS]", "[ARGS]"},
     .trigger = "[TOOL_CALLS]",
     .first = "",
     .before_name = "",
     .before_arguments = "[ARGS]",
     .after_arguments = "",
     .between = "[TOOL_CALLS]",
     .last = "",
     .short_ids = true},
    {.name = "mistral",
     .known_by = {"[TOOL_CALLS]", "[AVAILABLE_TOOLS]"},
     .trigger = "[TOOL_CALLS]",
     .first = "[",
     .before_name = "{\"name\": \"",
     .before_arguments = "\", \"arguments\": ",
     .after_arguments = "}",
     .between = ", ",
     .last = "]",
     .short_ids = true,
     .before_id = ", \"id\": \"",
     .after_id = "\""},
    {.name = "qwen-coder",
     .known_by = {"<tool_call>", "<parameter="},
     .trigger = "<tool_call>",
     .first = "\n",
     .before_name = "<function=",
     .before_arguments = ">\n",
     .after_arguments = "</function>\n</tool_call>",
     .between = "\n<tool_call>\n",
     .last = "",
     .values = Values::parameters,
     .parameter_begin = "<parameter=",
     .parameter_middle = ">\n",
     .parameter_end = "\n</parameter>\n"},
    {.name = "glm",
     .known_by = {"<tool_call>", "<arg_key>"},
     .trigger = "<tool_call>",
     .first = "",
     .before_name = "",
     .before_arguments = "\n",
     .after_arguments = "</tool_call>",
     .between = "\n<tool_call>",
     .last = "",
     .values = Values::parameters,
     .parameter_begin = "<arg_key>",
     .parameter_middle = "</arg_key>\n<arg_value>",
     .parameter_end = "</arg_value>\n"},
    tagged("hermes", {"<tool_call>", "\"arguments\""}),
    listed("nemotron", {"<TOOLCALL>", "\"arguments\""}, "<TOOLCALL>", "]</TOOLCALL>"),
    listed("granite", {"<|tool_call|>", "arguments"}, "<|tool_call|>", "]"),
    {.name = "deepseek-r1",
     .known_by = {"<｜tool▁calls▁begin｜>", "```json"},
     .trigger = "<｜tool▁calls▁begin｜>",
     .first = "<｜tool▁call▁begin｜>",
     .before_name = "function<｜tool▁sep｜>",
     .before_arguments = "\n```json\n",
     .after_arguments = "\n```<｜tool▁call▁end｜>",
     .between = "\n<｜tool▁call▁begin｜>",
     .last = "<｜tool▁calls▁end｜>"},
    {.name = "deepseek-v3.1",
     .known_by = {"<｜tool▁calls▁begin｜>", "<｜tool▁sep｜>"},
     .trigger = "<｜tool▁calls▁begin｜>",
     .first = "<｜tool▁call▁begin｜>",
     .before_name = "",
     .before_arguments = "<｜tool▁sep｜>",
     .after_arguments = "<｜tool▁call▁end｜>",
     .between = "<｜tool▁call▁begin｜>",
     .last = "<｜tool▁calls▁end｜>"},
    {.name = "llama3",
     .known_by = {"Environment: ipython", "\"parameters\""},
     .trigger = "",
     .first = "",
     .before_name = "{\"name\": \"",
     .before_arguments = "\", \"parameters\": ",
     .after_arguments = "}",
     .between = "",
     .last = "",
     .parallel = false},
    // SmolLM3: the template tells of tools that it gets as `xml_tools`.
    tagged("smollm3", {"xml_tools", "<tool_call>"}),
    tagged("generic", {"", ""}),
};

constexpr ReasoningSyntax kReasoning[] = {
    {"<think>", "</think>"},
    {"[THINK]", "[/THINK]"},
    {"<|channel>thought\n", "<channel|>"},
    {"<seed:think>", "</seed:think>"},
};

// The control tokens that stand in one of the texts.
std::vector<text::TokenId> marks_in(const std::vector<std::string_view>& texts, const text::Tokenizer& tokenizer) {
  std::vector<text::TokenId> out;
  for (text::TokenId id = 0; id < tokenizer.vocab_size(); id++) {
    if (!tokenizer.is_control(id)) continue;
    const std::string& token = tokenizer.vocabulary()[static_cast<size_t>(id)];
    const auto holds = [&](std::string_view text) { return text.find(token) != text.npos; };
    if (!token.empty() && std::ranges::any_of(texts, holds)) out.push_back(id);
  }
  return out;
}

}  // namespace

std::span<const ToolSyntax> tool_syntaxes() { return kSyntaxes; }

const ToolSyntax* tool_syntax_named(std::string_view name) {
  const auto found = std::ranges::find(kSyntaxes, name, &ToolSyntax::name);
  return found == std::end(kSyntaxes) ? nullptr : found;
}

const ToolSyntax& tool_syntax_of(std::string_view chat_template) {
  return *std::ranges::find_if(kSyntaxes, [&](const ToolSyntax& syntax) {
    return chat_template.find(syntax.known_by[0]) != chat_template.npos &&
           chat_template.find(syntax.known_by[1]) != chat_template.npos;
  });
}

const ReasoningSyntax* reasoning_syntax_of(std::string_view chat_template) {
  const auto found = std::ranges::find_if(kReasoning, [&](const ReasoningSyntax& syntax) {
    // A line break in a template is written as one or as "\n".
    const std::string_view word = syntax.begin.substr(0, syntax.begin.find('\n'));
    return chat_template.find(word) != chat_template.npos && chat_template.find(syntax.end) != chat_template.npos;
  });
  return found == std::end(kReasoning) ? nullptr : found;
}

ChatSyntax chat_syntax(std::string_view chat_template, const text::Tokenizer& tokenizer, std::string_view tools) {
  ChatSyntax out{.tools = tools.empty() ? &tool_syntax_of(chat_template) : tool_syntax_named(tools),
                 .reasoning = reasoning_syntax_of(chat_template)};
  out.told = out.tools->name != "generic" && chat_template.find("tools") != chat_template.npos;
  if (!out.told && out.tools->values != Values::json) out.tools = tool_syntax_named("generic");
  const ToolSyntax& t = *out.tools;
  std::vector<std::string_view> texts = {t.trigger,      t.first, t.before_name, t.before_arguments, t.after_arguments,
                                         t.between,      t.last,  t.quote,       t.parameter_begin,  t.parameter_middle,
                                         t.parameter_end};
  if (out.reasoning) texts.insert(texts.end(), {out.reasoning->begin, out.reasoning->end});
  if (t.values == Values::harmony)
    texts.insert(texts.end(), {"<|channel|>", "<|message|>", "<|constrain|>", "<|start|>", "<|end|>"});
  if (t.name == "llama3") texts.push_back("<|python_tag|>");
  out.marks = marks_in(texts, tokenizer);
  return out;
}

}  // namespace unisono::serve

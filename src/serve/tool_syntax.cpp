#include "serve/tool_syntax.h"

#include <algorithm>

namespace unisono::serve {

namespace {

using Values = ToolSyntax::Values;

using KnownBy = decltype(ToolSyntax::known_by);

// Each call is a JSON object.
constexpr std::string_view kName = "{\"name\": \"", kArguments = "\", \"arguments\": ";

// Each between two tags.
constexpr ToolSyntax tagged(std::string_view name, KnownBy known_by) {
  return {.name = name,
          .known_by = known_by,
          .trigger = "<tool_call>",
          .first = "\n",
          .before_name = kName,
          .before_arguments = kArguments,
          .after_arguments = "}\n</tool_call>",
          .between = "\n<tool_call>\n"};
}
// All in one JSON array.
constexpr ToolSyntax listed(std::string_view name, KnownBy known_by, std::string_view trigger, std::string_view last) {
  return {.name = name,
          .known_by = known_by,
          .trigger = trigger,
          .first = "[",
          .before_name = kName,
          .before_arguments = kArguments,
          .after_arguments = "}",
          .between = ", ",
          .last = last};
}
// Of several in one array, each may have an id.
constexpr ToolSyntax with_ids(ToolSyntax syntax, std::string_view before, std::string_view after) {
  syntax.short_ids = true;
  syntax.before_id = before;
  syntax.after_id = after;
  return syntax;
}
// Google's: call:NAME{key:value}
constexpr ToolSyntax bare(std::string_view name, std::string_view begin, std::string_view end, std::string_view quote) {
  return {.name = name,
          .known_by = {begin, "call:"},
          .trigger = begin,
          .before_name = "call:",
          .after_arguments = end,
          .between = begin,
          .values = Values::bare,
          .quote = quote};
}
// DeepSeek's, with what of it changed from one model to the next.
constexpr ToolSyntax deepseek(std::string_view name, std::string_view known_by, std::string_view before_name,
                              std::string_view before_arguments, std::string_view after_arguments,
                              std::string_view between) {
  return {.name = name,
          .known_by = {"<｜tool▁calls▁begin｜>", known_by},
          .trigger = "<｜tool▁calls▁begin｜>",
          .first = "<｜tool▁call▁begin｜>",
          .before_name = before_name,
          .before_arguments = before_arguments,
          .after_arguments = after_arguments,
          .between = between,
          .last = "<｜tool▁calls▁end｜>"};
}

// In the order in which templates are tried. The texts are what each family's own chat template writes for calls in a
// conversation, so that a model's answer and its history look alike.
constexpr ToolSyntax kSyntaxes[] = {
    {.name = "gpt-oss",
     .known_by = {"<|channel|>", "<|call|>"},
     .before_name = " to=functions.",
     .before_arguments = "<|message|>",
     .values = Values::harmony,
     .parallel = false},
    bare("gemma4", "<|tool_call>", "<tool_call|>", "<|\"|>"),
    bare("functiongemma", "<start_function_call>", "<end_function_call>", "<escape>"),
    {.name = "mistral-args",
     .known_by = {"[TOOL_CALLS]", "[ARGS]"},
     .trigger = "[TOOL_CALLS]",
     .before_arguments = "[ARGS]",
     .between = "[TOOL_CALLS]",
     .short_ids = true},
    with_ids(listed("mistral", {"[TOOL_CALLS]", "[AVAILABLE_TOOLS]"}, "[TOOL_CALLS]", "]"), ", \"id\": \"", "\""),
    {.name = "qwen-coder",
     .known_by = {"<tool_call>", "<parameter="},
     .trigger = "<tool_call>",
     .first = "\n",
     .before_name = "<function=",
     .before_arguments = ">\n",
     .after_arguments = "</function>\n</tool_call>",
     .between = "\n<tool_call>\n",
     .values = Values::parameters,
     .parameter_begin = "<parameter=",
     .parameter_middle = ">\n",
     .parameter_end = "\n</parameter>\n"},
    {.name = "glm",
     .known_by = {"<tool_call>", "<arg_key>"},
     .trigger = "<tool_call>",
     .before_arguments = "\n",
     .after_arguments = "</tool_call>",
     .between = "\n<tool_call>",
     .values = Values::parameters,
     .parameter_begin = "<arg_key>",
     .parameter_middle = "</arg_key>\n<arg_value>",
     .parameter_end = "</arg_value>\n"},
    tagged("hermes", {"<tool_call>", "\"arguments\""}),
    listed("nemotron", {"<TOOLCALL>", "\"arguments\""}, "<TOOLCALL>", "]</TOOLCALL>"),
    listed("granite", {"<|tool_call|>", "arguments"}, "<|tool_call|>", "]"),
    deepseek("deepseek-r1", "```json", "function<｜tool▁sep｜>", "\n```json\n", "\n```<｜tool▁call▁end｜>",
             "\n<｜tool▁call▁begin｜>"),
    deepseek("deepseek-v3.1", "<｜tool▁sep｜>", "", "<｜tool▁sep｜>", "<｜tool▁call▁end｜>", "<｜tool▁call▁begin｜>"),
    {.name = "llama3",
     .known_by = {"Environment: ipython", "\"parameters\""},
     .before_name = kName,
     .before_arguments = "\", \"parameters\": ",
     .after_arguments = "}",
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
    const std::string_view token = tokenizer.vocabulary()[static_cast<size_t>(id)];
    const auto holds = [&](std::string_view text) { return text.find(token) != text.npos; };
    if (!token.empty() && std::ranges::any_of(texts, holds)) out.push_back(id);
  }
  return out;
}

}  // namespace

std::vector<std::string_view> texts_of(const ToolSyntax& s) {
  std::vector<std::string_view> texts = {
      s.trigger,   s.first,    s.before_name, s.before_arguments, s.after_arguments,  s.between,      s.last,
      s.before_id, s.after_id, s.quote,       s.parameter_begin,  s.parameter_middle, s.parameter_end};
  if (s.values == Values::harmony)
    texts.insert(texts.end(), {"<|channel|>", "<|message|>", "<|constrain|>", "<|start|>", "<|end|>"});
  if (s.name == "llama3") texts.push_back("<|python_tag|>");
  return texts;
}

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
  std::vector<std::string_view> texts = texts_of(*out.tools);
  if (out.reasoning) texts.insert(texts.end(), {out.reasoning->begin, out.reasoning->end});
  out.marks = marks_in(texts, tokenizer);
  return out;
}

}  // namespace unisono::serve

#include "serve/answer_shape.h"

#include "serve/argument_shapes.h"

namespace unisono::serve {

namespace {

using grammar::Shape;

Shape text(std::string_view part) { return part.empty() ? Shape::sequence({}) : Shape::text(std::string(part)); }

Result<Shape> arguments(const ToolSyntax& syntax, const Tool& tool) {
  using Values = ToolSyntax::Values;
  if (syntax.values == Values::bare || syntax.values == Values::parameters) return argument_shape(syntax, tool);
  return Shape::json(tool.parameters, tool.where);
}

// One call of one of the tools.
Result<Shape> one_call(const ToolSyntax& syntax, const ToolCall& tools) {
  std::vector<Shape> ways;
  for (const Tool& tool : tools.callable) {
    auto written = arguments(syntax, tool);
    if (!written) return written;
    const std::string head = std::string(syntax.before_name) + tool.name + std::string(syntax.before_arguments);
    ways.push_back(Shape::sequence(Shape::text(head), *std::move(written)));
  }
  std::vector<Shape> parts{Shape::choice(std::move(ways))};
  if (!syntax.before_id.empty())
    parts.push_back(Shape::optional(Shape::sequence(
        {text(syntax.before_id), Shape::written(Shape::Kind::regex, "[a-zA-Z0-9]{9}"), text(syntax.after_id)})));
  parts.push_back(text(syntax.after_arguments));
  return Shape::sequence(std::move(parts));
}

Result<Shape> all_calls(const ToolSyntax& syntax, const ToolCall& tools) {
  auto call = one_call(syntax, tools);
  if (!call) return call;
  Shape calls =
      tools.parallel && syntax.parallel ? Shape::listed(*std::move(call), text(syntax.between)) : *std::move(call);
  return Shape::sequence(text(syntax.first), std::move(calls), text(syntax.last));
}

// Free text must not look like the beginning of a call that only the beginning of an answer can be.
constexpr const char* kLikeACall = "\\s*\\{\\s*\"(name|type|function|parameters)\"";
constexpr const char* kPythonTag = "<|python_tag|>";

// Messages of reasoning and preamble, then the last one: an answer or a call.
Result<Shape> harmony(const ToolSyntax& syntax, const ToolCall& tools, const std::optional<Shape>& content) {
  const std::vector<std::string> marks = {"<|channel|>", "<|message|>", "<|start|>", "<|end|>"};
  const Shape before = Shape::sequence(
      {Shape::one_of({"<|channel|>analysis<|message|>", "<|channel|>commentary<|message|>"}),
       Shape::until("<|end|>", {"<|channel|>", "<|message|>", "<|start|>"}), Shape::text("<|start|>assistant")});
  std::vector<Shape> last;
  if (tools.choice != ToolCall::Choice::required)
    last.push_back(Shape::sequence(Shape::text("<|channel|>final<|message|>"), content ? *content : Shape::free(marks)));
  for (const Tool& tool : tools.callable) {
    const std::string to = std::string(syntax.before_name) + tool.name;
    last.push_back(Shape::sequence(Shape::one_of({"<|channel|>commentary" + to + " <|constrain|>json<|message|>",
                                                   "<|channel|>commentary" + to + " json<|message|>",
                                                   to + "<|channel|>commentary <|constrain|>json<|message|>",
                                                   to + "<|channel|>commentary json<|message|>"}),
                                    Shape::json(tool.parameters, tool.where)));
  }
  return Shape::sequence(Shape::many(before), Shape::choice(std::move(last)));
}

// What follows the reasoning. without: what free text must not hold.
Result<Shape> body(const ChatSyntax& syntax, const ToolCall& tools, std::vector<std::string> without,
                   const std::optional<Shape>& content) {
  if (tools.choice == ToolCall::Choice::none) return content ? *content : Shape::free(std::move(without));
  const std::string trigger(syntax.tools->trigger);
  auto calls = all_calls(*syntax.tools, tools);
  if (!calls) return calls;
  if (trigger.empty()) calls = Shape::sequence(Shape::optional(Shape::text(kPythonTag)), *std::move(calls));
  if (content || tools.choice == ToolCall::Choice::required) {
    Shape only = Shape::sequence(text(trigger), *std::move(calls));
    return content && tools.choice == ToolCall::Choice::free ? Shape::choice(*content, std::move(only)) : std::move(only);
  }
  if (!trigger.empty()) calls = Shape::sequence(Shape::until(trigger, without), *std::move(calls));
  without.push_back(trigger.empty() ? kPythonTag : trigger);
  return Shape::choice(Shape::free(std::move(without), trigger.empty() ? kLikeACall : ""), *std::move(calls));
}

}  // namespace

Reasoning reasoning_after(std::string_view prompt, const ReasoningSyntax* syntax) {
  if (!syntax) return Reasoning::none;
  while (!prompt.empty() && std::string_view(" \t\r\n").find(prompt.back()) != std::string_view::npos)
    prompt.remove_suffix(1);
  std::string_view begin = syntax->begin;
  while (begin.back() == '\n') begin.remove_suffix(1);
  if (prompt.ends_with(begin)) return Reasoning::open;
  return prompt.ends_with(syntax->end) ? Reasoning::none : Reasoning::maybe;
}

Result<std::optional<Shape>> answer_shape(const ChatSyntax& syntax, const ToolCall& tools, Reasoning reasoning,
                                          const std::optional<Shape>& content) {
  if (tools.choice == ToolCall::Choice::none && !content) return std::optional<Shape>();
  if (syntax.tools->values == ToolSyntax::Values::harmony) {
    auto shape = harmony(*syntax.tools, tools, content);
    if (!shape) return shape.error();
    return std::optional<Shape>(*std::move(shape));
  }
  const std::string begin(syntax.reasoning ? syntax.reasoning->begin : "");
  std::vector<std::string> without;
  if (reasoning == Reasoning::maybe) without.push_back(begin);
  auto shape = body(syntax, tools, std::move(without), content);
  if (!shape) return shape.error();
  if (reasoning == Reasoning::none) return std::optional<Shape>(*std::move(shape));
  const Shape thought = Shape::until(std::string(syntax.reasoning->end), {});
  const Shape space = Shape::written(Shape::Kind::regex, "\\s{0,4}");
  const Shape opened = Shape::sequence(thought, space);
  const Shape before =
      reasoning == Reasoning::open ? opened : Shape::optional(Shape::sequence(Shape::text(begin), opened));
  return std::optional<Shape>(Shape::sequence(before, *std::move(shape)));
}

}  // namespace unisono::serve

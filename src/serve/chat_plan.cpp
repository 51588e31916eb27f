#include "serve/chat_plan.h"

#include "text/detokenizer.h"

namespace unisono::serve {

namespace {

constexpr ReasoningSyntax kHarmonyThought{"<|channel|>analysis<|message|>", "<|end|>"};
constexpr size_t kTail = 32;  // tokens: enough for the tag that opens or closes reasoning

std::string end_of(const text::Tokenizer& tokenizer, const std::vector<engine::TokenId>& prompt) {
  const size_t begin = prompt.size() - std::min(prompt.size(), kTail);
  return text::detokenize(tokenizer, {prompt.begin() + static_cast<int64_t>(begin), prompt.end()}, true);
}

bool is_harmony(const ServeContext& context) { return context.chat.tools->values == ToolSyntax::Values::harmony; }

// Refused: thinking where the model doesn't.
std::optional<ApiError> plan_thoughts(const ServeContext& context, const ChatCall::Thinking& thinking, Reasoning reasoning,
                                      engine::Request& request) {
  const bool harmony = is_harmony(context);
  if (reasoning == Reasoning::none && !harmony)
    return ApiError{.message = "'" + thinking.field + "' can only be disabled here: the model '" + context.model.name +
                               "' has no thoughts before its answers.",
                    .param = thinking.field,
                    .code = "unsupported_value"};
  if (!thinking.budget) return {};
  const ReasoningSyntax marks = harmony ? kHarmonyThought : *context.chat.reasoning;
  request.thoughts = {.begin = std::string(marks.begin),
                      .end = std::string(marks.end),
                      .max_tokens = *thinking.budget,
                      .open = !harmony && reasoning == Reasoning::open,
                      .again = harmony};
  return {};
}

}  // namespace

std::optional<ApiError> constrain(const ServeContext& context, const ConstraintCall& call, engine::Request& request) {
  if (context.constraints == nullptr)
    return ApiError{.message = "This server gives free answers only.", .param = call.field, .code = "unsupported_value"};
  auto matcher = context.constraints->matcher(call);
  if (const auto* error = std::get_if<ApiError>(&matcher)) return *error;
  request.constraint = std::get<grammar::Matcher>(std::move(matcher));
  return {};
}

Parsed<std::shared_ptr<const AnswerReading>> plan_chat(const ServeContext& context, ChatCall& call,
                                                       const std::vector<engine::TokenId>& prompt) {
  GenerationCall& generation = call.generation;
  auto reading = std::make_shared<AnswerReading>();
  reading->syntax = context.chat;
  reading->reasoning = reasoning_after(end_of(*context.tokenizer, prompt), context.chat.reasoning);
  if (call.thinking)
    if (auto error = plan_thoughts(context, *call.thinking, reading->reasoning, generation.request))
      return *std::move(error);
  reading->split_reasoning = call.split_reasoning;
  reading->tell_reasoning = call.tell_reasoning;
  std::optional<grammar::Shape> content;
  if (generation.constraint) content = generation.constraint->shape;
  auto shape = answer_shape(context.chat, call.tools, reading->reasoning, content);
  if (!shape)
    return ApiError{.message = shape.error().message, .param = shape.error().subject, .code = "invalid_constraint"};
  reading->tools = std::move(call.tools);
  // The texts that tell the parts of an answer apart may be control tokens.
  const bool has_parts =
      reading->reasoning != Reasoning::none || reading->tools.choice != ToolCall::Choice::none || is_harmony(context);
  if (has_parts && !context.chat.marks.empty()) generation.request.show_special = true;
  if (!*shape) return std::shared_ptr<const AnswerReading>(std::move(reading));
  const std::string field = generation.constraint ? generation.constraint->field : "tools";
  if (auto error = constrain(context, {.shape = **std::move(shape), .options = generation.schema_options, .field = field, .marks = true},
                             generation.request))
    return *std::move(error);
  return std::shared_ptr<const AnswerReading>(std::move(reading));
}

}  // namespace unisono::serve

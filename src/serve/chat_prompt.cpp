#include "serve/chat_prompt.h"

#include <ctime>

#include "serve/tool_prompt.h"

namespace unisono::serve {

namespace {

// "developer" is OpenAI's newer name of "system"; templates that don't know it would drop or refuse the message.
void rename_developers(text::ChatInput& input, std::string_view source) {
  if (source.find("developer") != source.npos) return;
  for (Json& message : input.messages.get_array()) {
    Json& role = message.get_object()["role"];
    if (role == "developer") role = "system";
  }
}

}  // namespace

Parsed<text::MarkedText> chat_text(const ServeContext& context, text::ChatInput input) {
  if (!context.chat_template) {
    return ApiError{.message = "The model '" + context.model.name + "' has no chat template; use /v1/completions.",
                    .param = "messages",
                    .code = "no_chat_template"};
  }
  const std::string_view source = context.chat_template->source();
  rename_developers(input, source);
  if (!context.chat.told) write_tools(input, *context.chat.tools, source);
  // SmolLM3's template knows tools by another name.
  if (source.find("xml_tools") != source.npos && !input.tools.is_null())
    input.variables["xml_tools"] = input.tools;
  auto rendered = context.chat_template->render(input, std::time(nullptr));
  if (!rendered) {
    const std::string& at = rendered.error().subject;
    return ApiError{.message = rendered.error().message,
                    .param = at.starts_with("messages[") ? at : "messages",
                    .code = "invalid_value"};
  }
  return *std::move(rendered);
}

Parsed<std::vector<engine::TokenId>> chat_prompt(const ServeContext& context, text::ChatInput input) {
  const auto text = chat_text(context, std::move(input));
  if (const auto* error = std::get_if<ApiError>(&text)) return *error;
  return context.tokenizer->encode(std::get<text::MarkedText>(text));
}

}  // namespace unisono::serve

#include "serve/text_content.h"

#include <algorithm>

namespace unisono::serve {

std::string read_text_part(Fields& part, const TextParts& parts) {
  const auto type = part.string("type");
  if (!type) part.required("type");
  if (type && std::ranges::find(parts.types, *type) == parts.types.end())
    part.fail("type", "unsupported_value",
              "'" + part.full_name("type") + "' is " + shown(Json(*type)) + ", which can't be read here; only text can.");
  const auto text = part.string("text");
  if (!text) part.required("text");
  part.ignore(parts.no_effect);
  return text.value_or("");
}

void fill_contents(JsonArray& messages) {
  for (Json& message : messages) {
    Json& content = message.get_object()["content"];
    if (content.is_null()) content = "";
  }
}

std::string read_text_content(Fields& fields, const Json& content, std::string_view name, const TextParts& parts) {
  if (content.is_string()) return std::string(content.get_string());
  if (!content.is_array()) {
    fields.fail(name, "invalid_type",
                "'" + fields.full_name(name) + "' must be a string or an array of text parts, not " + shown(content) + ".");
    return {};
  }
  std::string text;
  for (size_t i = 0; i < content.get_array().size() && !fields.failed(); i++) {
    const Json& part = content.get_array()[i];
    const std::string path = fields.full_name(name) + "[" + std::to_string(i) + "]";
    if (!part.is_object()) {
      fields.fail(
          {.message = "'" + path + "' must be an object, not " + shown(part) + ".", .param = path, .code = "invalid_type"});
      break;
    }
    Fields inner(part.get_object(), path + ".");
    if (i > 0) text += '\n';
    text += read_text_part(inner, parts);
    if (const auto error = inner.finish()) fields.fail(*error);
  }
  return text;
}

}  // namespace unisono::serve

#include "serve/text_content.h"

#include <algorithm>
#include <utility>

namespace unisono::serve {

std::string read_text_part(Fields& part, const TextParts& parts) {
  const auto type = part.needed_string("type");
  if (type && std::ranges::find(parts.types, *type) == parts.types.end())
    part.fail("type", "unsupported_value",
              "'" + part.full_name("type") + "' is " + shown(Json(*type)) + ", which can't be read here; only text can.");
  const auto text = part.needed_string("text");
  part.ignore(parts.no_effect);
  return text.value_or("");
}

void add_call(JsonObject& said, std::string_view id, std::string_view name, std::string_view arguments) {
  if (!said.contains("tool_calls")) said["tool_calls"] = JsonArray();
  said["tool_calls"].get_array().push_back(
      {{"id", id}, {"type", "function"}, {"function", {{"name", name}, {"arguments", arguments}}}});
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
  bool first = true;
  fields.each_element(name, content.get_array(), [&](Fields& part) {
    if (!std::exchange(first, false)) text += '\n';
    text += read_text_part(part, parts);
  });
  return text;
}

}  // namespace unisono::serve

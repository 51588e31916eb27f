// The content of a message or a block as clients write it: a string, or an array of typed parts of which only text can be
// read here.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "serve/fields.h"

namespace unisono::serve {

// What the parts of one API are called: the types that hold text, and their fields that have no effect here.
struct TextParts {
  std::span<const std::string_view> types{};
  std::span<const std::string_view> no_effect{};
};

// The text, parts joined by a line break. Anything but text is refused by its place; mistakes are left in `fields`.
std::string read_text_content(Fields& fields, const Json& content, std::string_view name, const TextParts& parts);

// Adds a call of a tool to what an assistant said, as chats have it. arguments: a JSON text.
void add_call(JsonObject& said, std::string_view id, std::string_view name, std::string_view arguments);

// Messages that only call or think have null where templates want a text: it becomes the empty one.
void fill_contents(JsonArray& messages);

// The text of one part, an object of `type` whose other fields `part` reads.
std::string read_text_part(Fields& part, const TextParts& parts);

}  // namespace unisono::serve

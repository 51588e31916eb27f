// Values as text: Python's str() and repr(), JSON as json.dumps writes it. The origin of texts in them is kept; where a
// whole value is a user's, so is the punctuation around it.
#pragma once

#include <string>

#include "text/jinja_value.h"

namespace unisono::text::jinja {

void print_to(TextBuilder& out, Budget& budget, const Value& value);  // str(value)
void repr_to(TextBuilder& out, Budget& budget, const Value& value);   // repr(value)

std::string to_string(Int value);
std::string to_string(double value);  // as Python's repr(float): the shortest that reads back the same

struct JsonStyle {
  bool ensure_ascii = false;
  bool sort_keys = false;
  std::optional<Text> indent{};  // of one level; absent: all on one line
  Text item_separator{}, key_separator{};
};
// Refused: what json.dumps refuses (undefined values, iterators, keys that are no scalars).
Value to_json(Budget& budget, const Value& value, const JsonStyle& style);

}  // namespace unisono::text::jinja

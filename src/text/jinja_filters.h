// The two halves of Jinja's filters: on texts and numbers, on lists and dicts. jinja_builtins.h finds them by name.
#pragma once

#include <string_view>
#include <unordered_map>

#include "text/jinja_builtins.h"

namespace unisono::text::jinja {

using Filters = std::unordered_map<std::string_view, Filter>;
const Filters& text_filters();
const Filters& list_filters();

}  // namespace unisono::text::jinja

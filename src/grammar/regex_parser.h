// Patterns in ECMA-262's notation, as JSON Schema uses them, to languages. Exact, or refused with what can't be: back
// references, look-behind and word boundaries; look-ahead and anchors are intersections with what follows.
#pragma once

#include <string_view>

#include "base/result.h"
#include "grammar/regex.h"

namespace unisono::grammar {

enum class Match : uint8_t {
  anywhere,  // as JSON Schema's `pattern`: some part of the text matches
  whole,     // the whole text matches
};

Result<RegexId> parse_regex(RegexPool& pool, std::string_view pattern, Match match);

}  // namespace unisono::grammar

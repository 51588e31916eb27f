// The values of JSON Schema's `format` that are enforced, as patterns for the whole string.
#pragma once

#include <string>
#include <string_view>

namespace unisono::grammar {

enum class FormatKind : uint8_t {
  enforced,
  beyond_patterns,  // in the standard, but no regular language
  unknown,          // not in the standard: an annotation
};

// pattern: filled in where enforced.
FormatKind find_format(std::string_view name, std::string* pattern);

}  // namespace unisono::grammar

// What references within a schema document need of RFC 3986 and RFC 6901.
#pragma once

#include <string>
#include <string_view>

namespace unisono::grammar {

// The reference as seen from `base`, both without fragments.
std::string resolve_uri(const std::string& base, std::string_view reference);
std::string escape_pointer(std::string_view step);
std::string unescape_pointer(std::string_view step);
std::string unescape_percent(std::string_view text);

}  // namespace unisono::grammar

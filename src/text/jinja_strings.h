// Python's str methods on texts, as functions. All of them keep each character's origin, and Markup stays Markup.
#pragma once

#include <optional>
#include <string_view>
#include <vector>

#include "text/jinja_value.h"

namespace unisono::text::jinja {

constexpr size_t kNotFound = std::string_view::npos;
// Bytes; linear in the text, whatever the needle.
size_t find_first(std::string_view text, std::string_view needle, size_t from = 0);
size_t find_last(std::string_view text, std::string_view needle);

enum class Side : uint8_t { left, right, both };
// Without the characters at its ends that are in `set`; white space when there is none.
Text strip(Budget& budget, const Text& text, std::optional<std::string_view> set, Side side);
// limit: how often it is cut at most; negative: everywhere. No separator: at runs of white space.
std::vector<Value> split(Budget& budget, const Text& text, std::optional<std::string_view> separator, Int limit);
std::vector<Value> split_from_right(Budget& budget, const Text& text, std::optional<std::string_view> separator, Int limit);
std::vector<Value> split_lines(Budget& budget, const Text& text, bool keep_ends);
Text replace(Budget& budget, const Text& text, std::string_view what, const Text& by, Int limit);
Text join(Budget& budget, const Text& separator, const std::vector<Text>& parts);
// Filled up with `fill` to `width` code points. both: as str.center.
Text padded(Budget& budget, const Text& text, Int width, const Text& fill, Side text_side);

}  // namespace unisono::text::jinja

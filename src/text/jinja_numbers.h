// Numbers out of texts and of one another, as Python's int(), float() and round() do it.
#pragma once

#include <optional>
#include <string_view>

#include "text/jinja_value.h"

namespace unisono::text::jinja {

Int whole_part(double value);  // towards zero; refused: infinities, NaN, what Int can't hold
std::optional<Int> parse_int(std::string_view text, int base);
std::optional<double> parse_float(std::string_view text);
double rounded(double value, int digits);  // half to even on the exact value; digits may be negative

}  // namespace unisono::text::jinja

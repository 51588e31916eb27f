// What Python's str knows of Unicode: code points, case, white space, what can be printed. Never changes a text's origin.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "text/jinja_text.h"
#include "text/unicode.h"

namespace unisono::text::jinja {

// The code point at a byte, and its length in bytes. A byte that begins no character is taken alone, as U+FFFD.
struct CodePoint {
  char32_t value = 0;
  size_t length = 1;
};
CodePoint code_point_at(std::string_view text, size_t at);
// Where the code point that ends before `end` begins; end > 0.
size_t code_point_before(std::string_view text, size_t end);
size_t count_code_points(std::string_view text);
// The byte at which the n-th code point begins, at most text.size().
size_t offset_of(std::string_view text, size_t n);

bool is_space(char32_t c);      // str.isspace
bool is_line_end(char32_t c);   // str.splitlines
bool is_printable(char32_t c);  // str.isprintable
bool is_alpha(char32_t c);
bool is_digit(char32_t c);
bool is_word(char32_t c);  // \w
bool is_cased(char32_t c);
bool is_lower(char32_t c);
bool is_upper(char32_t c);

std::string_view strip_left(std::string_view text);  // white space, as is_space() has it
std::string_view strip_right(std::string_view text);

Text lower(Budget& budget, const Text& text);
Text upper(Budget& budget, const Text& text);
Text title(Budget& budget, const Text& text);       // str.title
Text capitalize(Budget& budget, const Text& text);  // str.capitalize
Text swapcase(Budget& budget, const Text& text);

}  // namespace unisono::text::jinja

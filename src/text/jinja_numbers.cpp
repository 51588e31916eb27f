#include "text/jinja_numbers.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <string>

#include "text/jinja_operators.h"
#include "text/jinja_unicode.h"

namespace unisono::text::jinja {

namespace {

std::string_view stripped(std::string_view text) { return strip_right(strip_left(text)); }

// Digits with single underscores between them, without the underscores; nothing when they stand elsewhere.
std::optional<std::string> without_underscores(std::string_view text) {
  std::string out;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '_') {
      out.push_back(text[i]);
      continue;
    }
    auto alnum = [](char c) { return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); };
    if (i == 0 || i + 1 == text.size() || !alnum(text[i - 1]) || !alnum(text[i + 1])) return std::nullopt;
  }
  return out;
}

int digit_of(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  char low = static_cast<char>(c | 0x20);
  return low >= 'a' && low <= 'z' ? low - 'a' + 10 : 99;
}

}  // namespace

Int whole_part(double value) {
  if (!std::isfinite(value)) fail("cannot convert float infinity or NaN to integer");
  checked(std::fabs(value) >= 0x1p126, 0);
  return static_cast<Int>(value);
}

std::optional<Int> parse_int(std::string_view text, int base) {
  text = stripped(text);
  bool negative = text.starts_with('-');
  if (negative || text.starts_with('+')) text.remove_prefix(1);
  if (text.size() > 2 && text[0] == '0') {
    char mark = static_cast<char>(text[1] | 0x20);
    int marked = mark == 'x' ? 16 : mark == 'o' ? 8 : mark == 'b' ? 2 : 0;
    if (marked != 0 && (marked == base || base == 0)) {
      base = marked;
      text.remove_prefix(text[2] == '_' ? 3 : 2);
    }
  }
  if (base == 0) base = 10;
  std::optional<std::string> digits = without_underscores(text);
  if (!digits || digits->empty()) return std::nullopt;
  Int value = 0;
  for (char c : *digits) {
    int digit = digit_of(c);
    if (digit >= base) return std::nullopt;
    bool overflows = __builtin_mul_overflow(value, Int(base), &value);
    overflows |= __builtin_add_overflow(value, Int(digit), &value);
    checked(overflows, value);
  }
  return negative ? -value : value;
}

std::optional<double> parse_float(std::string_view text) {
  std::optional<std::string> plain = without_underscores(stripped(text));
  if (!plain || plain->empty()) return std::nullopt;
  std::string_view rest = *plain;
  bool negative = rest.starts_with('-');
  if (negative || rest.starts_with('+')) rest.remove_prefix(1);
  std::string word(rest);
  std::transform(word.begin(), word.end(), word.begin(), [](char c) { return static_cast<char>(c | 0x20); });
  double value = 0;
  if (word == "inf" || word == "infinity") {
    value = INFINITY;
  } else if (word == "nan") {
    value = NAN;
  } else {
    if (rest.empty() || !(digit_of(rest[0]) < 10 || rest[0] == '.')) return std::nullopt;
    auto [end, error] = std::from_chars(rest.data(), rest.data() + rest.size(), value);
    if (end != rest.data() + rest.size() || error == std::errc::invalid_argument) return std::nullopt;
    if (error == std::errc::result_out_of_range) value = std::strtod(std::string(rest).c_str(), nullptr);
  }
  return negative ? -value : value;
}

double rounded(double value, int digits) {
  if (!std::isfinite(value) || digits > 340) return value;
  if (digits < -310) return std::copysign(0.0, value);
  if (digits >= 0) {
    char text[1024];
    std::snprintf(text, sizeof text, "%.*f", digits, value);
    return std::strtod(text, nullptr);
  }
  double power = std::pow(10.0, -digits);
  return std::nearbyint(value / power) * power;
}

}  // namespace unisono::text::jinja

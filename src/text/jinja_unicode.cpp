#include "text/jinja_unicode.h"

#include <utf8proc.h>

#include <algorithm>
#include <array>
#include <iterator>

namespace unisono::text::jinja {

namespace {

// Characters whose upper case is several characters (Unicode 14, SpecialCasing.txt, the unconditional part).
struct Expansion {
  char32_t from;
  std::array<char32_t, 3> to;
};
constexpr Expansion kUpper[] = {
    // clang-format off
    {0xdf, {0x53, 0x53}}, {0x149, {0x2bc, 0x4e}}, {0x1f0, {0x4a, 0x30c}}, {0x390, {0x399, 0x308, 0x301}},
    {0x3b0, {0x3a5, 0x308, 0x301}}, {0x587, {0x535, 0x552}}, {0x1e96, {0x48, 0x331}}, {0x1e97, {0x54, 0x308}},
    {0x1e98, {0x57, 0x30a}}, {0x1e99, {0x59, 0x30a}}, {0x1e9a, {0x41, 0x2be}}, {0x1f50, {0x3a5, 0x313}},
    {0x1f52, {0x3a5, 0x313, 0x300}}, {0x1f54, {0x3a5, 0x313, 0x301}}, {0x1f56, {0x3a5, 0x313, 0x342}},
    {0x1f80, {0x1f08, 0x399}}, {0x1f81, {0x1f09, 0x399}}, {0x1f82, {0x1f0a, 0x399}}, {0x1f83, {0x1f0b, 0x399}},
    {0x1f84, {0x1f0c, 0x399}}, {0x1f85, {0x1f0d, 0x399}}, {0x1f86, {0x1f0e, 0x399}}, {0x1f87, {0x1f0f, 0x399}},
    {0x1f88, {0x1f08, 0x399}}, {0x1f89, {0x1f09, 0x399}}, {0x1f8a, {0x1f0a, 0x399}}, {0x1f8b, {0x1f0b, 0x399}},
    {0x1f8c, {0x1f0c, 0x399}}, {0x1f8d, {0x1f0d, 0x399}}, {0x1f8e, {0x1f0e, 0x399}}, {0x1f8f, {0x1f0f, 0x399}},
    {0x1f90, {0x1f28, 0x399}}, {0x1f91, {0x1f29, 0x399}}, {0x1f92, {0x1f2a, 0x399}}, {0x1f93, {0x1f2b, 0x399}},
    {0x1f94, {0x1f2c, 0x399}}, {0x1f95, {0x1f2d, 0x399}}, {0x1f96, {0x1f2e, 0x399}}, {0x1f97, {0x1f2f, 0x399}},
    {0x1f98, {0x1f28, 0x399}}, {0x1f99, {0x1f29, 0x399}}, {0x1f9a, {0x1f2a, 0x399}}, {0x1f9b, {0x1f2b, 0x399}},
    {0x1f9c, {0x1f2c, 0x399}}, {0x1f9d, {0x1f2d, 0x399}}, {0x1f9e, {0x1f2e, 0x399}}, {0x1f9f, {0x1f2f, 0x399}},
    {0x1fa0, {0x1f68, 0x399}}, {0x1fa1, {0x1f69, 0x399}}, {0x1fa2, {0x1f6a, 0x399}}, {0x1fa3, {0x1f6b, 0x399}},
    {0x1fa4, {0x1f6c, 0x399}}, {0x1fa5, {0x1f6d, 0x399}}, {0x1fa6, {0x1f6e, 0x399}}, {0x1fa7, {0x1f6f, 0x399}},
    {0x1fa8, {0x1f68, 0x399}}, {0x1fa9, {0x1f69, 0x399}}, {0x1faa, {0x1f6a, 0x399}}, {0x1fab, {0x1f6b, 0x399}},
    {0x1fac, {0x1f6c, 0x399}}, {0x1fad, {0x1f6d, 0x399}}, {0x1fae, {0x1f6e, 0x399}}, {0x1faf, {0x1f6f, 0x399}},
    {0x1fb2, {0x1fba, 0x399}}, {0x1fb3, {0x391, 0x399}}, {0x1fb4, {0x386, 0x399}}, {0x1fb6, {0x391, 0x342}},
    {0x1fb7, {0x391, 0x342, 0x399}}, {0x1fbc, {0x391, 0x399}}, {0x1fc2, {0x1fca, 0x399}}, {0x1fc3, {0x397, 0x399}},
    {0x1fc4, {0x389, 0x399}}, {0x1fc6, {0x397, 0x342}}, {0x1fc7, {0x397, 0x342, 0x399}}, {0x1fcc, {0x397, 0x399}},
    {0x1fd2, {0x399, 0x308, 0x300}}, {0x1fd3, {0x399, 0x308, 0x301}}, {0x1fd6, {0x399, 0x342}},
    {0x1fd7, {0x399, 0x308, 0x342}}, {0x1fe2, {0x3a5, 0x308, 0x300}}, {0x1fe3, {0x3a5, 0x308, 0x301}},
    {0x1fe4, {0x3a1, 0x313}}, {0x1fe6, {0x3a5, 0x342}}, {0x1fe7, {0x3a5, 0x308, 0x342}}, {0x1ff2, {0x1ffa, 0x399}},
    {0x1ff3, {0x3a9, 0x399}}, {0x1ff4, {0x38f, 0x399}}, {0x1ff6, {0x3a9, 0x342}}, {0x1ff7, {0x3a9, 0x342, 0x399}},
    {0x1ffc, {0x3a9, 0x399}}, {0xfb00, {0x46, 0x46}}, {0xfb01, {0x46, 0x49}}, {0xfb02, {0x46, 0x4c}},
    {0xfb03, {0x46, 0x46, 0x49}}, {0xfb04, {0x46, 0x46, 0x4c}}, {0xfb05, {0x53, 0x54}}, {0xfb06, {0x53, 0x54}},
    {0xfb13, {0x544, 0x546}}, {0xfb14, {0x544, 0x535}}, {0xfb15, {0x544, 0x53b}}, {0xfb16, {0x54e, 0x546}},
    {0xfb17, {0x544, 0x53d}},
    // clang-format on
};

const Expansion* expansion_of(char32_t c) {
  const Expansion* found = std::lower_bound(std::begin(kUpper), std::end(kUpper), c,
                                            [](const Expansion& e, char32_t key) { return e.from < key; });
  return found != std::end(kUpper) && found->from == c ? found : nullptr;
}

utf8proc_category_t category(char32_t c) { return utf8proc_category(static_cast<utf8proc_int32_t>(c)); }

char32_t simple_upper(char32_t c) { return static_cast<char32_t>(utf8proc_toupper(static_cast<utf8proc_int32_t>(c))); }
char32_t simple_lower(char32_t c) { return static_cast<char32_t>(utf8proc_tolower(static_cast<utf8proc_int32_t>(c))); }
char32_t simple_title(char32_t c) { return static_cast<char32_t>(utf8proc_totitle(static_cast<utf8proc_int32_t>(c))); }

// Characters that the rule for the final sigma looks through.
bool is_case_ignorable(char32_t c) {
  switch (category(c)) {
    case UTF8PROC_CATEGORY_MN:
    case UTF8PROC_CATEGORY_ME:
    case UTF8PROC_CATEGORY_CF:
    case UTF8PROC_CATEGORY_LM:
    case UTF8PROC_CATEGORY_SK: return true;
    default: break;
  }
  constexpr char32_t kOthers[] = {'\'',   '.',    ':',    0xB7,   0x387,  0x55F,  0x5F4,  0x2018, 0x2019,
                                  0x2024, 0x2027, 0xFE13, 0xFE52, 0xFE55, 0xFF07, 0xFF0E, 0xFF1A};
  return std::find(std::begin(kOthers), std::end(kOthers), c) != std::end(kOthers);
}

// Whether the capital sigma at a byte ends a word, so that its lower case is the final one.
bool is_final_sigma(std::string_view text, size_t at) {
  bool cased_before = false;
  for (size_t i = at; i > 0;) {
    i = code_point_before(text, i);
    char32_t c = code_point_at(text, i).value;
    if (is_case_ignorable(c)) continue;
    cased_before = is_cased(c);
    break;
  }
  if (!cased_before) return false;
  for (size_t i = at + code_point_at(text, at).length; i < text.size();) {
    CodePoint c = code_point_at(text, i);
    if (!is_case_ignorable(c.value)) return !is_cased(c.value);
    i += c.length;
  }
  return true;
}

void append_lower(std::string& out, std::string_view text, size_t at, char32_t c) {
  if (c == 0x3A3) return append_utf8(out, is_final_sigma(text, at) ? 0x3C2 : 0x3C3);
  if (c == 0x130) {
    out.append("i\u0307");
    return;
  }
  append_utf8(out, simple_lower(c));
}

void append_upper(std::string& out, char32_t c) {
  const Expansion* expansion = expansion_of(c);
  if (expansion == nullptr) return append_utf8(out, simple_upper(c));
  for (char32_t part : expansion->to)
    if (part != 0) append_utf8(out, part);
}

void append_title(std::string& out, char32_t c) {
  const Expansion* expansion = expansion_of(c);
  bool has_title_form = c >= 0x1F80 && c <= 0x1FFC && simple_title(c) != c;  // Greek with iota below
  if (expansion == nullptr || has_title_form) return append_utf8(out, simple_title(c));
  bool after_cased = false;
  for (char32_t part : expansion->to) {
    if (part == 0) break;
    append_utf8(out, after_cased ? simple_lower(part) : part);
    after_cased |= is_cased(part);
  }
}

// map(out, whole text, byte offset, code point) for each code point, keeping each one's origin.
template <class Map>
Text map_code_points(Budget& budget, const Text& text, Map&& map) {
  TextBuilder builder(budget);
  std::string_view whole = text.view();
  size_t base = 0;
  std::string mapped;
  text.for_each_run([&](std::string_view run, bool from_user) {
    mapped.clear();
    for (size_t i = 0; i < run.size();) {
      CodePoint c = code_point_at(run, i);
      if (c.length == 1 && static_cast<unsigned char>(run[i]) >= 0x80)
        mapped.push_back(run[i]);
      else
        map(mapped, whole, base + i, c.value);
      i += c.length;
    }
    builder.append(mapped, from_user);
    base += run.size();
  });
  return builder.finish().as_markup(text.is_markup());
}

}  // namespace

CodePoint code_point_at(std::string_view text, size_t at) {
  auto byte = [&](size_t i) { return static_cast<unsigned char>(text[at + i]); };
  unsigned char lead = byte(0);
  if (lead < 0x80) return {lead, 1};
  size_t length = lead >= 0xF0 ? 4 : lead >= 0xE0 ? 3 : lead >= 0xC2 ? 2 : 0;
  if (length == 0 || lead > 0xF4 || at + length > text.size()) return {0xFFFD, 1};
  char32_t value = lead & (0x7F >> length);
  for (size_t i = 1; i < length; ++i) {
    if ((byte(i) & 0xC0) != 0x80) return {0xFFFD, 1};
    value = value << 6 | (byte(i) & 0x3F);
  }
  constexpr char32_t kSmallest[] = {0, 0, 0x80, 0x800, 0x10000};
  if (value < kSmallest[length] || value > 0x10FFFF || (value >= 0xD800 && value < 0xE000)) return {0xFFFD, 1};
  return {value, length};
}

size_t code_point_before(std::string_view text, size_t end) {
  for (size_t length = 1; length <= 4 && length <= end; ++length) {
    if ((static_cast<unsigned char>(text[end - length]) & 0xC0) == 0x80) continue;
    return code_point_at(text.substr(0, end), end - length).length == length ? end - length : end - 1;
  }
  return end - 1;
}

size_t count_code_points(std::string_view text) {
  return static_cast<size_t>(std::count_if(text.begin(), text.end(), [](char c) { return (c & 0xC0) != 0x80; }));
}

size_t offset_of(std::string_view text, size_t n) {
  size_t at = 0;
  while (n > 0 && at < text.size()) {
    at += code_point_at(text, at).length;
    --n;
  }
  return at;
}

bool is_space(char32_t c) {
  return (c >= 9 && c <= 13) || (c >= 0x1C && c <= 0x20) || c == 0x85 || c == 0xA0 || c == 0x1680 ||
         (c >= 0x2000 && c <= 0x200A) || c == 0x2028 || c == 0x2029 || c == 0x202F || c == 0x205F || c == 0x3000;
}

bool is_line_end(char32_t c) {
  return (c >= 10 && c <= 13) || (c >= 0x1C && c <= 0x1E) || c == 0x85 || c == 0x2028 || c == 0x2029;
}

bool is_printable(char32_t c) {
  switch (category(c)) {
    case UTF8PROC_CATEGORY_CN:
    case UTF8PROC_CATEGORY_CC:
    case UTF8PROC_CATEGORY_CF:
    case UTF8PROC_CATEGORY_CS:
    case UTF8PROC_CATEGORY_CO:
    case UTF8PROC_CATEGORY_ZL:
    case UTF8PROC_CATEGORY_ZP: return false;
    case UTF8PROC_CATEGORY_ZS: return c == ' ';
    default: return true;
  }
}

bool is_alpha(char32_t c) {
  utf8proc_category_t kind = category(c);
  return kind >= UTF8PROC_CATEGORY_LU && kind <= UTF8PROC_CATEGORY_LO;
}

bool is_digit(char32_t c) { return category(c) == UTF8PROC_CATEGORY_ND; }

bool is_word(char32_t c) {
  utf8proc_category_t kind = category(c);
  return c == '_' || is_alpha(c) || kind == UTF8PROC_CATEGORY_ND || kind == UTF8PROC_CATEGORY_NL ||
         kind == UTF8PROC_CATEGORY_NO;
}

bool is_lower(char32_t c) { return utf8proc_islower(static_cast<utf8proc_int32_t>(c)) != 0; }
bool is_upper(char32_t c) { return utf8proc_isupper(static_cast<utf8proc_int32_t>(c)) != 0; }
bool is_cased(char32_t c) { return is_lower(c) || is_upper(c) || category(c) == UTF8PROC_CATEGORY_LT; }

std::string_view strip_left(std::string_view text) {
  while (!text.empty()) {
    CodePoint c = code_point_at(text, 0);
    if (!is_space(c.value)) break;
    text.remove_prefix(c.length);
  }
  return text;
}

std::string_view strip_right(std::string_view text) {
  while (!text.empty()) {
    size_t last = code_point_before(text, text.size());
    if (!is_space(code_point_at(text, last).value)) break;
    text = text.substr(0, last);
  }
  return text;
}

Text lower(Budget& budget, const Text& text) { return map_code_points(budget, text, append_lower); }

Text upper(Budget& budget, const Text& text) {
  return map_code_points(budget, text,
                         [](std::string& out, std::string_view, size_t, char32_t c) { append_upper(out, c); });
}

Text title(Budget& budget, const Text& text) {
  bool in_word = false;
  return map_code_points(budget, text, [&](std::string& out, std::string_view whole, size_t at, char32_t c) {
    if (in_word)
      append_lower(out, whole, at, c);
    else
      append_title(out, c);
    in_word = is_cased(c);
  });
}

Text capitalize(Budget& budget, const Text& text) {
  return map_code_points(budget, text, [](std::string& out, std::string_view whole, size_t at, char32_t c) {
    if (at == 0)
      append_title(out, c);
    else
      append_lower(out, whole, at, c);
  });
}

Text swapcase(Budget& budget, const Text& text) {
  return map_code_points(budget, text, [](std::string& out, std::string_view whole, size_t at, char32_t c) {
    if (is_upper(c))
      append_lower(out, whole, at, c);
    else if (is_lower(c))
      append_upper(out, c);
    else
      append_utf8(out, c);
  });
}

}  // namespace unisono::text::jinja

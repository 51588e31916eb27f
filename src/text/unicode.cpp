#include "text/unicode.h"

#include <utf8proc.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <vector>

#include "base/check.h"

namespace unisono::text {

namespace {

constexpr uint64_t kHighBits = 0x8080808080808080;

// Bounds of the second byte of a character, by its lead: they exclude overlong forms, surrogates and what lies above
// U+10FFFF (Unicode, table 3-7). length 0: no character begins so.
struct Lead {
  uint8_t length = 0, low = 0x80, high = 0xBF;
};

Lead lead_of(unsigned char byte) {
  if (byte < 0x80) return {1};
  if (byte < 0xC2) return {0};
  if (byte < 0xE0) return {2};
  if (byte == 0xE0) return {3, 0xA0, 0xBF};
  if (byte == 0xED) return {3, 0x80, 0x9F};
  if (byte < 0xF0) return {3};
  if (byte == 0xF0) return {4, 0x90, 0xBF};
  if (byte < 0xF4) return {4};
  if (byte == 0xF4) return {4, 0x80, 0x8F};
  return {0};
}

}  // namespace

Utf8Step next_step(std::string_view text) {
  const auto byte = [&](size_t i) { return static_cast<unsigned char>(text[i]); };
  const Lead lead = lead_of(byte(0));
  if (lead.length == 1) return {Utf8Step::Kind::character, 1};
  if (lead.length == 0) return {Utf8Step::Kind::broken, 1};
  for (uint8_t i = 1; i < lead.length; i++) {
    if (i == text.size()) return {Utf8Step::Kind::incomplete, i};
    const unsigned char low = i == 1 ? lead.low : 0x80, high = i == 1 ? lead.high : 0xBF;
    if (byte(i) < low || byte(i) > high) return {Utf8Step::Kind::broken, i};
  }
  return {Utf8Step::Kind::character, lead.length};
}

size_t valid_prefix(std::string_view text) {
  size_t at = 0;
  while (at < text.size()) {
    uint64_t eight = 0;
    while (at + 8 <= text.size()) {
      std::memcpy(&eight, text.data() + at, 8);
      if (eight & kHighBits) break;
      at += 8;
    }
    if (at == text.size()) break;
    const Utf8Step step = next_step(text.substr(at));
    if (step.kind != Utf8Step::Kind::character) break;
    at += step.bytes;
  }
  return at;
}

void append_utf8(std::string& out, char32_t code) {
  const auto put = [&](char32_t byte) { out += static_cast<char>(byte); };
  if (code < 0x80) {
    put(code);
  } else if (code < 0x800) {
    put(0xC0 | code >> 6);
    put(0x80 | (code & 63));
  } else if (code < 0x10000) {
    put(0xE0 | code >> 12);
    put(0x80 | (code >> 6 & 63));
    put(0x80 | (code & 63));
  } else {
    put(0xF0 | code >> 18);
    put(0x80 | (code >> 12 & 63));
    put(0x80 | (code >> 6 & 63));
    put(0x80 | (code & 63));
  }
}

bool plainly_nfc(std::string_view text) {
  // Nothing below U+0300, whose first byte is 0xCC, decomposes, combines with what precedes it or is a mark.
  return std::none_of(text.begin(), text.end(), [](char c) { return static_cast<unsigned char>(c) >= 0xCC; });
}

std::string nfc(std::string_view text) {
  std::vector<utf8proc_int32_t> codes;
  codes.reserve(text.size());
  for (size_t at = 0; at < text.size();) {
    const auto code = static_cast<utf8proc_int32_t>(decode_at(text, at));
    std::array<utf8proc_int32_t, 16> parts{};
    const utf8proc_ssize_t n = utf8proc_decompose_char(
        code, parts.data(), parts.size(), static_cast<utf8proc_option_t>(UTF8PROC_STABLE | UTF8PROC_DECOMPOSE), nullptr);
    check(n > 0 && n <= static_cast<utf8proc_ssize_t>(parts.size()), "a code point decomposes into a few others");
    codes.insert(codes.end(), parts.begin(), parts.begin() + n);
  }
  // utf8proc's own ordering of marks takes quadratic time on a long run of them.
  const auto mark_class = [](utf8proc_int32_t code) { return utf8proc_get_property(code)->combining_class; };
  for (auto run = codes.begin(); run != codes.end();) {
    auto end = run;
    while (end != codes.end() && mark_class(*end) != 0) ++end;
    if (end - run > 1) std::stable_sort(run, end, [&](auto a, auto b) { return mark_class(a) < mark_class(b); });
    run = end == run ? end + 1 : end;
  }
  const utf8proc_ssize_t n = utf8proc_normalize_utf32(codes.data(), static_cast<utf8proc_ssize_t>(codes.size()),
                                                      static_cast<utf8proc_option_t>(UTF8PROC_STABLE | UTF8PROC_COMPOSE));
  check(n >= 0, "utf8proc composes in place");
  std::string out;
  out.reserve(text.size());
  for (utf8proc_ssize_t i = 0; i < n; i++) append_utf8(out, static_cast<char32_t>(codes[static_cast<size_t>(i)]));
  return out;
}

}  // namespace unisono::text

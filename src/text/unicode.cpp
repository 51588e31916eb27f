#include "text/unicode.h"

#include <utf8proc.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <iterator>
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

// Of a character below U+0300: such ones neither decompose canonically without composing again, nor join what precedes.
bool is_plain(char c) { return static_cast<unsigned char>(c) < 0xCC; }

struct CodeRange {
  utf8proc_int32_t first = 0, last = 0;
};
// Marks that Unicode got after the version whose normal form Hugging Face's tokenizers compute: to them, and so to the
// models, these don't combine with anything.
constexpr CodeRange kNewerMarks[] = {
    {0x7FD, 0x7FD},     {0x898, 0x89F},     {0x8CA, 0x8D3},     {0x9FE, 0x9FE},     {0xC3C, 0xC3C},     {0xD3B, 0xD3C},
    {0xEBA, 0xEBA},     {0x1715, 0x1715},   {0x1ABF, 0x1ACE},   {0x1DF6, 0x1DFA},   {0xA82C, 0xA82C},   {0x10D24, 0x10D27},
    {0x10EAB, 0x10EAC}, {0x10EFD, 0x10EFF}, {0x10F46, 0x10F50}, {0x10F82, 0x10F85}, {0x11070, 0x11070}, {0x1133B, 0x1133B},
    {0x1145E, 0x1145E}, {0x11839, 0x1183A}, {0x11930, 0x11930}, {0x1193D, 0x1193E}, {0x11943, 0x11943}, {0x119E0, 0x119E0},
    {0x11A34, 0x11A34}, {0x11A47, 0x11A47}, {0x11A99, 0x11A99}, {0x11D42, 0x11D42}, {0x11D44, 0x11D45}, {0x11D97, 0x11D97},
    {0x11F41, 0x11F42}, {0x16FF0, 0x16FF1}, {0x1E08F, 0x1E08F}, {0x1E130, 0x1E136}, {0x1E2AE, 0x1E2AE}, {0x1E2EC, 0x1E2EF},
    {0x1E4EC, 0x1E4EF}};

bool is_newer_mark(utf8proc_int32_t code) {
  const auto* range = std::lower_bound(std::begin(kNewerMarks), std::end(kNewerMarks), code,
                                       [](const CodeRange& r, utf8proc_int32_t c) { return r.last < c; });
  return range != std::end(kNewerMarks) && code >= range->first;
}

// Orders marks and composes, in place; then empties codes into out.
void settle(std::vector<utf8proc_int32_t>& codes, std::string& out) {
  // utf8proc's own ordering of marks takes quadratic time on a long run of them.
  const auto mark_class = [](utf8proc_int32_t code) { return utf8proc_get_property(code)->combining_class; };
  for (auto run = codes.begin(); run != codes.end();) {
    auto end = run;
    while (end != codes.end() && mark_class(*end) != 0) ++end;
    if (end - run > 1) std::stable_sort(run, end, [&](auto a, auto b) { return mark_class(a) < mark_class(b); });
    run = end == run ? end + 1 : end;
  }
  const auto options = static_cast<utf8proc_option_t>(UTF8PROC_STABLE | UTF8PROC_COMPOSE);
  const utf8proc_ssize_t n = utf8proc_normalize_utf32(codes.data(), static_cast<utf8proc_ssize_t>(codes.size()), options);
  check(n >= 0, "utf8proc composes in place");
  for (utf8proc_ssize_t i = 0; i < n; i++) append_utf8(out, static_cast<char32_t>(codes[static_cast<size_t>(i)]));
  codes.clear();
}

void append_composed(std::string_view text, std::string& out) {
  std::vector<utf8proc_int32_t> codes;
  codes.reserve(text.size());
  for (size_t at = 0; at < text.size();) {
    const auto code = static_cast<utf8proc_int32_t>(decode_at(text, at));
    if (is_newer_mark(code)) {
      settle(codes, out);
      append_utf8(out, static_cast<char32_t>(code));
      continue;
    }
    std::array<utf8proc_int32_t, 16> parts{};
    const auto options = static_cast<utf8proc_option_t>(UTF8PROC_STABLE | UTF8PROC_DECOMPOSE);
    const utf8proc_ssize_t n = utf8proc_decompose_char(code, parts.data(), parts.size(), options, nullptr);
    check(n > 0 && n <= static_cast<utf8proc_ssize_t>(parts.size()), "a code point decomposes into a few others");
    codes.insert(codes.end(), parts.begin(), parts.begin() + n);
  }
  settle(codes, out);
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

bool plainly_nfc(std::string_view text) { return std::all_of(text.begin(), text.end(), is_plain); }

std::string nfc(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  // Only what lies between plain characters needs work, together with the plain one before it, which marks may join.
  for (size_t at = 0; at < text.size();) {
    size_t begin = at;
    while (begin < text.size() && is_plain(text[begin])) begin++;
    size_t end = begin;
    while (end < text.size() && (!is_plain(text[end]) || is_continuation(text[end]))) end++;
    if (end > begin && begin > at) {
      do begin--;
      while (is_continuation(text[begin]));
    }
    out += text.substr(at, begin - at);
    if (end > begin) append_composed(text.substr(begin, end - begin), out);
    at = end;
  }
  return out;
}

}  // namespace unisono::text

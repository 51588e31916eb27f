// UTF-8 and normal form C: telling valid from broken bytes, decoding, composing. It knows no tokens.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace unisono::text {

inline constexpr std::string_view kReplacement = "\xEF\xBF\xBD";  // U+FFFD
inline constexpr std::string_view kSpaceMark = "\xE2\x96\x81";    // U+2581, which SentencePiece writes for a space

// What a text begins with.
struct Utf8Step {
  enum class Kind : uint8_t {
    character,   // a whole character of `bytes` bytes
    broken,      // a maximal broken part: `bytes` bytes that no continuation makes a character
    incomplete,  // the rest of the text, which further bytes could make a character
  };
  Kind kind = Kind::character;
  uint8_t bytes = 0;
};

// A byte of a character, but not its first.
inline bool is_continuation(char c) { return (static_cast<unsigned char>(c) & 0xC0) == 0x80; }

// text must not be empty. Broken parts are cut as Unicode recommends (section 3.9, "maximal subparts").
Utf8Step next_step(std::string_view text);

// Bytes of the longest prefix that is valid UTF-8.
size_t valid_prefix(std::string_view text);

// The code point at text[at], which must be valid UTF-8; at moves behind it.
inline char32_t decode_at(std::string_view text, size_t& at) {
  const auto byte = [&](size_t i) { return static_cast<unsigned char>(text[at + i]); };
  const char32_t lead = byte(0);
  char32_t code = lead;
  size_t length = 1;
  if (lead >= 0xF0) {
    code = (lead & 7) << 18 | (byte(1) & 63u) << 12 | (byte(2) & 63u) << 6 | (byte(3) & 63u);
    length = 4;
  } else if (lead >= 0xE0) {
    code = (lead & 15) << 12 | (byte(1) & 63u) << 6 | (byte(2) & 63u);
    length = 3;
  } else if (lead >= 0x80) {
    code = (lead & 31) << 6 | (byte(1) & 63u);
    length = 2;
  }
  at += length;
  return code;
}

void append_utf8(std::string& out, char32_t code);

// True when text is certainly in normal form C, by a look at its bytes.
bool plainly_nfc(std::string_view text);

// Normal form C of valid UTF-8, as Hugging Face's tokenizers compute it: marks that are newer than their tables stay as
// they are. Linear in the text, whatever its combining marks (times the log of their longest run).
std::string nfc(std::string_view text);

}  // namespace unisono::text

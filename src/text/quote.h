// Foreign bytes as part of a sentence for people: short, printable, in quotes.
#pragma once

#include <string>
#include <string_view>

namespace unisono::text {

inline std::string quote(std::string_view text) {
  constexpr size_t kMax = 40;
  constexpr char kHex[] = "0123456789ABCDEF";
  std::string out = "\"";
  for (const char c : text.substr(0, kMax)) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte >= 0x20 && byte < 0x7F)
      out += c;
    else
      out += {'\\', 'x', kHex[byte >> 4], kHex[byte & 15]};
  }
  return out + (text.size() > kMax ? "...\"" : "\"");
}

}  // namespace unisono::text

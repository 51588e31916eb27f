// Foreign bytes as part of a sentence for people: short, printable, in quotes.
#pragma once

#include <string>
#include <string_view>

namespace unisono {

// 'name', with bytes outside printable ASCII as \xNN and at most 80 of the name's bytes.
inline std::string quoted(std::string_view name) {
  constexpr size_t kShown = 80;
  constexpr char kHex[] = "0123456789abcdef";
  std::string text = "'";
  for (const char c : name.substr(0, kShown)) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte >= 0x20 && byte < 0x7F)
      text += c;
    else
      text += {'\\', 'x', kHex[byte >> 4], kHex[byte & 15]};
  }
  return text + (name.size() > kShown ? "...'" : "'");
}

}  // namespace unisono

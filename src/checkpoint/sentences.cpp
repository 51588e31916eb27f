#include "checkpoint/sentences.h"

namespace unisono::checkpoint {

std::string quoted(std::string_view name) {
  constexpr size_t kShown = 80;
  static constexpr char kHex[] = "0123456789abcdef";
  std::string text = "'";
  for (const char c : name.substr(0, kShown)) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte >= 0x20 && byte < 0x7F) {
      text += c;
    } else {
      text += "\\x";
      text += kHex[byte >> 4];
      text += kHex[byte & 15];
    }
  }
  return text + (name.size() > kShown ? "...'" : "'");
}

Error key_error(std::string_view key, const std::string& rest) {
  return {"Key " + quoted(key) + " " + rest + ".", std::string(key)};
}

Error tensor_error(std::string_view name, const std::string& rest) {
  return {"Tensor " + quoted(name) + " " + rest + ".", std::string(name)};
}

}  // namespace unisono::checkpoint

// How a damaged or unsupported file is told about: names from the file made safe to print, and the sentences around them.
#pragma once

#include <string>
#include <string_view>

#include "base/result.h"

namespace unisono::checkpoint {

// 'name', with bytes outside printable ASCII as \xNN and at most 80 of the name's bytes.
std::string quoted(std::string_view name);

// "Key 'general.alignment' <rest>." and "Tensor 'output.weight' <rest>."
Error key_error(std::string_view key, const std::string& rest);
Error tensor_error(std::string_view name, const std::string& rest);

}  // namespace unisono::checkpoint

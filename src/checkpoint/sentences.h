// How a damaged or unsupported file is told about, with its keys and tensors by name.
#pragma once

#include <string>
#include <string_view>

#include "base/result.h"

namespace unisono::checkpoint {

// "Key 'general.alignment' <rest>." and "Tensor 'output.weight' <rest>."
Error key_error(std::string_view key, const std::string& rest);
Error tensor_error(std::string_view name, const std::string& rest);

}  // namespace unisono::checkpoint

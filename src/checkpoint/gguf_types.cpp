#include "checkpoint/gguf_types.h"

#include <array>
#include <string_view>

namespace unisono::checkpoint {

namespace {

// By number, as ggml.h assigns them; types it has removed keep the names they had.
constexpr std::array<std::string_view, 43> kTensorTypes = {
    "F32",        "F16",        "Q4_0",       "Q4_1",  "Q4_2",     "Q4_3",     "Q5_0",     "Q5_1",    "Q8_0",
    "Q8_1",       "Q2_K",       "Q3_K",       "Q4_K",  "Q5_K",     "Q6_K",     "Q8_K",     "IQ2_XXS", "IQ2_XS",
    "IQ3_XXS",    "IQ1_S",      "IQ4_NL",     "IQ3_S", "IQ2_S",    "IQ4_XS",   "I8",       "I16",     "I32",
    "I64",        "F64",        "IQ1_M",      "BF16",  "Q4_0_4_4", "Q4_0_4_8", "Q4_0_8_8", "TQ1_0",   "TQ2_0",
    "IQ4_NL_4_4", "IQ4_NL_4_8", "IQ4_NL_8_8", "MXFP4", "NVFP4",    "Q1_0",     "Q2_0"};

}  // namespace

size_t least_bytes(ValueType type) {
  switch (type) {
    case ValueType::u8:
    case ValueType::i8:
    case ValueType::boolean: return 1;
    case ValueType::u16:
    case ValueType::i16: return 2;
    case ValueType::u32:
    case ValueType::i32:
    case ValueType::f32: return 4;
    case ValueType::string:
    case ValueType::u64:
    case ValueType::i64:
    case ValueType::f64:
    case ValueType::array: return 8;
  }
  return 1;
}

std::optional<DType> tensor_type(uint32_t number) {
  if (number >= kTensorTypes.size()) return {};
  for (int i = 0; i < kDTypes; i++) {
    const auto type = static_cast<DType>(i);
    if (info(type).name == kTensorTypes[number]) return type;
  }
  return {};
}

std::string tensor_type_name(uint32_t number) {
  if (number >= kTensorTypes.size()) return "number " + std::to_string(number);
  return std::string(kTensorTypes[number]);
}

std::string supported_types() {
  std::string names;
  for (int i = 0; i < kDTypes; i++) names += (i == 0 ? "" : ", ") + std::string(info(static_cast<DType>(i)).name);
  return names;
}

}  // namespace unisono::checkpoint

// The numbers that stand for types in a GGUF file and their names. Which of them we compute with is base/tensor.h's word.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "base/tensor.h"

namespace unisono::checkpoint {

// Of a metadata value.
enum class ValueType : uint32_t { u8, i8, u16, i16, u32, i32, f32, boolean, string, array, u64, i64, f64 };
inline constexpr uint32_t kValueTypes = 13;

// The bytes that a value takes at least: all of a number, the length of a string. Not of an array.
size_t least_bytes(ValueType type);

// The element type that a tensor's type number stands for; nullopt: none that we compute with.
std::optional<DType> tensor_type(uint32_t number);

// "IQ2_XS", also of types that we don't compute with; "number 99" where GGUF has none.
std::string tensor_type_name(uint32_t number);

// "F32, F16, ..."
std::string supported_types();

}  // namespace unisono::checkpoint

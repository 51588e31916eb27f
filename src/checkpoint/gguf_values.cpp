// Metadata entries of a GGUF file: a key, a type and a value, or an array of values.
#include <concepts>
#include <limits>
#include <string>
#include <utility>

#include "checkpoint/gguf.h"
#include "checkpoint/gguf_types.h"
#include "checkpoint/sentences.h"

namespace unisono::checkpoint {

namespace {

constexpr size_t kMaxKey = 65535;  // by the format's specification
constexpr auto kMaxInt64 = static_cast<uint64_t>(std::numeric_limits<int64_t>::max());

Error cut_short(std::string_view key) {
  return key_error(key, "reaches beyond the end of the file: the file is cut short or damaged");
}

Error bad_bool(std::string_view key, uint8_t byte) {
  return key_error(key, "holds a truth value of " + std::to_string(byte) + " where only 0 and 1 mean something");
}

template <class Stored>
Result<Value> read_number(Cursor& cursor, std::string_view key) {
  Stored stored{};
  if (!cursor.read(stored)) return cut_short(key);
  if constexpr (std::floating_point<Stored>) {
    return Value{static_cast<double>(stored)};
  } else if constexpr (std::same_as<Stored, uint64_t>) {
    if (stored > kMaxInt64) return Value{stored};
  }
  return Value{static_cast<int64_t>(stored)};
}

Result<Value> read_bool(Cursor& cursor, std::string_view key) {
  uint8_t byte = 0;
  if (!cursor.read(byte)) return cut_short(key);
  if (byte > 1) return bad_bool(key, byte);
  return Value{byte == 1};
}

Result<Value> read_string(Cursor& cursor, std::string_view key) {
  std::string_view text;
  if (!cursor.read_text(text)) return cut_short(key);
  return Value{text};
}

// The caller has made sure that n numbers are there.
template <class Stored, class Wide>
std::vector<Wide> widen(Cursor& cursor, uint64_t n) {
  std::vector<Wide> values(n);
  for (Wide& value : values) {
    Stored stored{};
    cursor.read(stored);
    value = static_cast<Wide>(stored);
  }
  return values;
}

Value read_u64s(Cursor& cursor, uint64_t n) {
  auto values = widen<uint64_t, uint64_t>(cursor, n);
  for (const uint64_t value : values) {
    if (value > kMaxInt64) return Array{std::move(values)};
  }
  return Array{std::vector<int64_t>(values.begin(), values.end())};
}

Result<Value> read_bools(Cursor& cursor, std::string_view key, uint64_t n) {
  std::vector<bool> values(n);
  for (size_t i = 0; i < n; i++) {
    uint8_t byte = 0;
    cursor.read(byte);
    if (byte > 1) return bad_bool(key, byte);
    values[i] = byte == 1;
  }
  return Value{Array{std::move(values)}};
}

Result<Value> read_strings(Cursor& cursor, std::string_view key, uint64_t n) {
  std::vector<std::string_view> values(n);
  for (std::string_view& value : values) {
    if (!cursor.read_text(value)) return cut_short(key);
  }
  return Value{Array{std::move(values)}};
}

Result<Value> read_array(Cursor& cursor, std::string_view key) {
  uint32_t type = 0;
  uint64_t n = 0;
  if (!cursor.read(type) || !cursor.read(n)) return cut_short(key);
  if (type >= kValueTypes) return key_error(key, "is an array of unknown type " + std::to_string(type));
  const auto element = static_cast<ValueType>(type);
  if (element == ValueType::array) return key_error(key, "is an array of arrays, which is not supported");
  if (n > cursor.left() / least_bytes(element)) {
    return key_error(key, "announces " + std::to_string(n) +
                              " elements, more than the rest of the file can hold: the file is cut short or damaged");
  }
  switch (element) {
    case ValueType::u8: return Value{Array{widen<uint8_t, int64_t>(cursor, n)}};
    case ValueType::i8: return Value{Array{widen<int8_t, int64_t>(cursor, n)}};
    case ValueType::u16: return Value{Array{widen<uint16_t, int64_t>(cursor, n)}};
    case ValueType::i16: return Value{Array{widen<int16_t, int64_t>(cursor, n)}};
    case ValueType::u32: return Value{Array{widen<uint32_t, int64_t>(cursor, n)}};
    case ValueType::i32: return Value{Array{widen<int32_t, int64_t>(cursor, n)}};
    case ValueType::i64: return Value{Array{widen<int64_t, int64_t>(cursor, n)}};
    case ValueType::u64: return read_u64s(cursor, n);
    case ValueType::f32: return Value{Array{widen<float, double>(cursor, n)}};
    case ValueType::f64: return Value{Array{widen<double, double>(cursor, n)}};
    case ValueType::boolean: return read_bools(cursor, key, n);
    case ValueType::string: return read_strings(cursor, key, n);
    case ValueType::array: break;
  }
  return key_error(key, "is an array of arrays, which is not supported");
}

Result<Value> read_value(Cursor& cursor, std::string_view key, ValueType type) {
  switch (type) {
    case ValueType::u8: return read_number<uint8_t>(cursor, key);
    case ValueType::i8: return read_number<int8_t>(cursor, key);
    case ValueType::u16: return read_number<uint16_t>(cursor, key);
    case ValueType::i16: return read_number<int16_t>(cursor, key);
    case ValueType::u32: return read_number<uint32_t>(cursor, key);
    case ValueType::i32: return read_number<int32_t>(cursor, key);
    case ValueType::f32: return read_number<float>(cursor, key);
    case ValueType::boolean: return read_bool(cursor, key);
    case ValueType::string: return read_string(cursor, key);
    case ValueType::array: return read_array(cursor, key);
    case ValueType::u64: return read_number<uint64_t>(cursor, key);
    case ValueType::i64: return read_number<int64_t>(cursor, key);
    case ValueType::f64: return read_number<double>(cursor, key);
  }
  return key_error(key, "has the unknown type " + std::to_string(static_cast<uint32_t>(type)));
}

}  // namespace

Result<Entry> read_entry(Cursor& cursor, uint64_t number) {
  std::string_view key;
  if (!cursor.read_text(key)) {
    return Error{"The name of metadata key " + std::to_string(number) +
                 " reaches beyond the end of the file: the file is cut short or damaged."};
  }
  if (key.empty()) return Error{"Metadata key " + std::to_string(number) + " has no name: the file is damaged."};
  if (key.size() > kMaxKey) {
    return key_error(key.substr(0, kMaxKey), "has a name of " + std::to_string(key.size()) +
                                                 " bytes, longer than the format's limit of " + std::to_string(kMaxKey));
  }
  uint32_t type = 0;
  if (!cursor.read(type)) return cut_short(key);
  auto value = read_value(cursor, key, static_cast<ValueType>(type));
  if (!value) return value.error();
  return Entry{key, std::move(*value)};
}

}  // namespace unisono::checkpoint

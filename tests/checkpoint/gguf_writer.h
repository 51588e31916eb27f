// Writes small GGUF files for tests: metadata of every type and tensors of raw bytes. It checks nothing, so that damaged
// files can be made with it too, and it shares no code with the reader.
#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <fstream>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/tensor.h"

namespace unisono::testing {

// The number of a metadata type in the file.
template <class T>
constexpr uint32_t gguf_value_type() {
  if constexpr (std::same_as<T, uint8_t>) return 0;
  if constexpr (std::same_as<T, int8_t>) return 1;
  if constexpr (std::same_as<T, uint16_t>) return 2;
  if constexpr (std::same_as<T, int16_t>) return 3;
  if constexpr (std::same_as<T, uint32_t>) return 4;
  if constexpr (std::same_as<T, int32_t>) return 5;
  if constexpr (std::same_as<T, float>) return 6;
  if constexpr (std::same_as<T, bool>) return 7;
  if constexpr (std::same_as<T, uint64_t>) return 10;
  if constexpr (std::same_as<T, int64_t>) return 11;
  if constexpr (std::same_as<T, double>) return 12;
  return ~0u;
}
inline constexpr uint32_t kGgufString = 8;
inline constexpr uint32_t kGgufArray = 9;

template <class T>
concept GgufScalar = (gguf_value_type<T>() != ~0u);

// The number of a tensor type in the file.
inline uint32_t gguf_tensor_type(DType type) {
  constexpr uint32_t numbers[] = {0, 1, 30, 8, 2, 3, 6, 7, 12, 13, 14};
  return numbers[static_cast<size_t>(type)];
}

// Bytes in the order they are added. Remembers where each number and length went, for tests that damage them.
class GgufBytes {
 public:
  struct Field {
    std::string what{};  // "length of key 'general.name'"
    size_t at = 0;
    size_t bytes = 0;
  };

  template <class T>
  void number(std::string what, T value) {
    fields_.push_back({std::move(what), bytes_.size(), sizeof(T)});
    raw(&value, sizeof(T));
  }

  void text(const std::string& what, std::string_view text) {
    number<uint64_t>("length of " + what, text.size());
    raw(text.data(), text.size());
  }

  void raw(const void* data, size_t size) {
    const auto* begin = static_cast<const std::byte*>(data);
    bytes_.insert(bytes_.end(), begin, begin + size);
  }

  void append(const GgufBytes& part) {
    for (Field field : part.fields_) {
      field.at += bytes_.size();
      fields_.push_back(std::move(field));
    }
    raw(part.bytes_.data(), part.bytes_.size());
  }

  void pad(size_t alignment) { bytes_.resize((bytes_.size() + alignment - 1) / alignment * alignment); }

  const std::vector<std::byte>& bytes() const { return bytes_; }
  const std::vector<Field>& fields() const { return fields_; }

 private:
  std::vector<std::byte> bytes_{};
  std::vector<Field> fields_{};
};

class GgufWriter {
 public:
  // A metadata value, with exactly the type of the argument: set("llama.block_count", uint32_t{5}).
  template <GgufScalar T>
  GgufWriter& set(const std::string& key, T value) {
    begin_entry(key, gguf_value_type<T>());
    metadata_.number<T>("value of " + key, value);
    return *this;
  }

  GgufWriter& set(const std::string& key, std::string_view text) {
    begin_entry(key, kGgufString);
    metadata_.text("value of " + key, text);
    return *this;
  }
  GgufWriter& set(const std::string& key, const char* text) { return set(key, std::string_view(text)); }

  template <GgufScalar T>
  GgufWriter& set(const std::string& key, const std::vector<T>& values) {
    begin_array(key, gguf_value_type<T>(), values.size());
    for (const T value : values) metadata_.raw(&value, sizeof(T));
    return *this;
  }

  GgufWriter& set(const std::string& key, const std::vector<std::string>& texts) {
    begin_array(key, kGgufString, texts.size());
    for (const std::string& text : texts) metadata_.text("element of " + key, text);
    return *this;
  }

  // From here on offsets are multiples of it, and general.alignment says so. Before the first tensor.
  GgufWriter& align(uint32_t alignment) {
    alignment_ = alignment;
    return set("general.alignment", alignment);
  }

  GgufWriter& version(uint32_t version) {
    version_ = version;
    return *this;
  }

  // A tensor; dims outermost first. Its data are laid behind those of the tensor before.
  GgufWriter& tensor(const std::string& name, uint32_t type, const std::vector<int64_t>& dims,
                     std::span<const std::byte> data) {
    data_.pad(alignment_);
    describe(name, type, dims, data_.bytes().size());
    data_.raw(data.data(), data.size());
    return *this;
  }

  GgufWriter& tensor(const std::string& name, DType type, const std::vector<int64_t>& dims,
                     std::span<const std::byte> data) {
    return tensor(name, gguf_tensor_type(type), dims, data);
  }

  GgufWriter& tensor(const std::string& name, const std::vector<int64_t>& dims, std::span<const float> values) {
    return tensor(name, DType::f32, dims, std::as_bytes(values));
  }

  // A tensor's description alone, at any offset from the beginning of the data.
  GgufWriter& describe(const std::string& name, uint32_t type, const std::vector<int64_t>& dims, uint64_t offset) {
    n_tensors_++;
    descriptions_.text("name of " + name, name);
    descriptions_.number("number of dimensions of " + name, static_cast<uint32_t>(dims.size()));
    for (size_t i = dims.size(); i-- > 0;) descriptions_.number("dimension of " + name, static_cast<uint64_t>(dims[i]));
    descriptions_.number("type of " + name, type);
    descriptions_.number("offset of " + name, offset);
    return *this;
  }

  // The whole file, with its fields.
  GgufBytes build() const {
    GgufBytes file;
    file.raw("GGUF", 4);
    file.number("version", version_);
    file.number("number of tensors", n_tensors_);
    file.number("number of metadata keys", n_entries_);
    file.append(metadata_);
    file.append(descriptions_);
    if (n_tensors_ > 0) file.pad(alignment_);
    file.append(data_);
    return file;
  }

  std::vector<std::byte> bytes() const { return build().bytes(); }

  // False: the file could not be written.
  bool save(const std::string& path) const {
    const auto all = bytes();
    std::ofstream file(path, std::ios::binary);
    file.write(reinterpret_cast<const char*>(all.data()), static_cast<std::streamsize>(all.size()));
    return file.good();
  }

 private:
  void begin_entry(const std::string& key, uint32_t type) {
    n_entries_++;
    metadata_.text("key " + key, key);
    metadata_.number("type of " + key, type);
  }

  void begin_array(const std::string& key, uint32_t type, uint64_t n) {
    begin_entry(key, kGgufArray);
    metadata_.number("element type of " + key, type);
    metadata_.number("number of elements of " + key, n);
  }

  uint32_t version_ = 3;
  uint32_t alignment_ = 32;
  uint64_t n_tensors_ = 0;
  uint64_t n_entries_ = 0;
  GgufBytes metadata_{};
  GgufBytes descriptions_{};
  GgufBytes data_{};
};

}  // namespace unisono::testing

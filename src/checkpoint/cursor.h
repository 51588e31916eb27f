// A place in foreign bytes that moves forward and never past their end. Knows nothing of what the bytes mean.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string_view>

namespace unisono::checkpoint {

static_assert(std::endian::native == std::endian::little, "numbers are read as they lie in the file");

// Every read tells whether the bytes were there; one that fails moves nothing and leaves its result alone.
class Cursor {
 public:
  explicit Cursor(std::span<const std::byte> bytes) : bytes_(bytes) {}

  size_t position() const { return position_; }
  size_t left() const { return bytes_.size() - position_; }

  template <class T>
  bool read(T& value) {
    if (left() < sizeof(T)) return false;
    std::memcpy(&value, bytes_.data() + position_, sizeof(T));
    position_ += sizeof(T);
    return true;
  }

  // A u64 length and that many bytes, viewed where they lie.
  bool read_text(std::string_view& text) {
    const size_t begin = position_;
    uint64_t length = 0;
    if (!read(length)) return false;
    if (length > left()) {
      position_ = begin;
      return false;
    }
    text = {reinterpret_cast<const char*>(bytes_.data() + position_), static_cast<size_t>(length)};
    position_ += text.size();
    return true;
  }

 private:
  std::span<const std::byte> bytes_;
  size_t position_ = 0;
};

}  // namespace unisono::checkpoint

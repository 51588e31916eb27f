// Memory that others view: an owning, aligned buffer and a read-only file mapping. Views (span, string_view, TensorView)
// are valid as long as their owner lives; owners can be moved without moving the bytes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "base/result.h"

namespace unisono {

// Zeroed memory, aligned to 64 bytes; at 2 MiB and more to a huge page, which the kernel is asked to use. Large memory
// becomes resident as it comes into use.
class Buffer {
 public:
  Buffer() = default;
  explicit Buffer(size_t bytes);
  ~Buffer();
  Buffer(Buffer&& other) noexcept;
  Buffer& operator=(Buffer&& other) noexcept;

  // Asks for the memory to be dealt page by page over these nodes; before anything is written to it. Advice: small buffers, and
  // those that the system refuses, lie where they are first written from. No nodes: nothing is asked.
  void interleave(std::span<const int> nodes);

  std::byte* data() { return data_; }
  const std::byte* data() const { return data_; }
  size_t size() const { return size_; }

  // The memory as an array of T; T must be trivial.
  template <class T>
  std::span<T> as() {
    return {reinterpret_cast<T*>(data_), size_ / sizeof(T)};
  }
  template <class T>
  std::span<const T> as() const {
    return {reinterpret_cast<const T*>(data_), size_ / sizeof(T)};
  }

 private:
  std::byte* data_ = nullptr;
  size_t size_ = 0;
  size_t mapped_ = 0;  // bytes; 0: from the heap
};

// Gives the system the memory that free() keeps for later, where the C library can.
void release_free_memory();

// A whole file, read-only. The file must not change while it is mapped.
class MappedFile {
 public:
  // Fails with a sentence naming the path: missing, a folder, unreadable, empty.
  static Result<MappedFile> open(const std::string& path);
  ~MappedFile();
  MappedFile(MappedFile&& other) noexcept;
  MappedFile& operator=(MappedFile&& other) noexcept;

  std::span<const std::byte> bytes() const { return {data_, size_}; }
  // Lets go of the memory of a part of bytes(), with what else is on its pages: it is read again from the file when needed.
  void release(std::span<const std::byte> part) const;

 private:
  MappedFile() = default;
  const std::byte* data_ = nullptr;
  size_t size_ = 0;
};

}  // namespace unisono

#include "base/buffer.h"

#include <fcntl.h>
#include <malloc.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <new>
#include <utility>

#include "base/placement.h"

namespace unisono {

namespace {
constexpr size_t kLine = 64;
constexpr size_t kHugePage = size_t{2} << 20;
constexpr size_t kMapped = size_t{128} << 10;  // at least: of less, a mapping's last page would be a large part

size_t round_up(size_t n, size_t unit) { return (n + unit - 1) / unit * unit; }
size_t page_bytes() { return static_cast<size_t>(::sysconf(_SC_PAGESIZE)); }

std::byte* map(size_t bytes) {
  void* memory = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) throw std::bad_alloc();
  return static_cast<std::byte*>(memory);
}
}  // namespace

Buffer::Buffer(size_t bytes) : size_(bytes) {
  if (bytes == 0) return;
  if (bytes < kMapped) {
    data_ = static_cast<std::byte*>(::operator new(round_up(bytes, kLine), std::align_val_t{kLine}));
    std::memset(data_, 0, bytes);
    return;
  }
  // An anonymous mapping is zero already, and its pages cost nothing until they are touched.
  mapped_ = round_up(bytes, page_bytes());
  if (bytes < kHugePage) {
    data_ = map(mapped_);
    return;
  }
  // Map one huge page more than asked and give back what lies before and after the aligned part.
  std::byte* begin = map(mapped_ + kHugePage);
  data_ = reinterpret_cast<std::byte*>(round_up(reinterpret_cast<uintptr_t>(begin), kHugePage));
  const size_t before = static_cast<size_t>(data_ - begin);
  if (before > 0) ::munmap(begin, before);
  if (before < kHugePage) ::munmap(data_ + mapped_, kHugePage - before);
  // Advice: without huge pages it is only slower. Not for the last bytes: they would become resident as a whole one.
  ::madvise(data_, bytes / kHugePage * kHugePage, MADV_HUGEPAGE);
}

Buffer::~Buffer() {
  if (mapped_ > 0) {
    ::munmap(data_, mapped_);
  } else if (data_ != nullptr) {
    ::operator delete(data_, std::align_val_t{kLine});
  }
}

void Buffer::interleave(std::span<const int> nodes) {
  if (mapped_ > 0 && !nodes.empty()) interleave_pages(data_, mapped_, nodes);
}

Buffer::Buffer(Buffer&& other) noexcept
    : data_(std::exchange(other.data_, nullptr)),
      size_(std::exchange(other.size_, 0)),
      mapped_(std::exchange(other.mapped_, 0)) {}

Buffer& Buffer::operator=(Buffer&& other) noexcept {
  std::swap(data_, other.data_);
  std::swap(size_, other.size_);
  std::swap(mapped_, other.mapped_);
  return *this;
}

void release_free_memory() {
#ifdef __GLIBC__
  ::malloc_trim(0);
#endif
}

Result<MappedFile> MappedFile::open(const std::string& path) {
  auto failed = [&](const std::string& why) { return Error{"Can't read '" + path + "': " + why + ".", path}; };
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) return failed(std::strerror(errno));
  struct stat status {};
  if (::fstat(fd, &status) != 0 || !S_ISREG(status.st_mode)) {
    ::close(fd);
    return failed("it is not a regular file");
  }
  if (status.st_size == 0) {
    ::close(fd);
    return failed("the file is empty");
  }
  MappedFile file;
  file.size_ = static_cast<size_t>(status.st_size);
  void* map = ::mmap(nullptr, file.size_, PROT_READ, MAP_PRIVATE, fd, 0);
  const int reason = errno;
  ::close(fd);
  if (map == MAP_FAILED) {
    file.size_ = 0;
    return failed(std::strerror(reason));
  }
  file.data_ = static_cast<const std::byte*>(map);
  return file;
}

void MappedFile::release(std::span<const std::byte> part) const {
  const size_t page = page_bytes();
  const size_t from = static_cast<size_t>(part.data() - data_);
  const size_t begin = from / page * page, end = round_up(from + part.size(), page);
  if (begin < end) ::madvise(const_cast<std::byte*>(data_) + begin, end - begin, MADV_DONTNEED);  // advice: it may stay
}

MappedFile::~MappedFile() {
  if (data_ != nullptr) ::munmap(const_cast<std::byte*>(data_), size_);
}

MappedFile::MappedFile(MappedFile&& other) noexcept
    : data_(std::exchange(other.data_, nullptr)), size_(std::exchange(other.size_, 0)) {}

MappedFile& MappedFile::operator=(MappedFile&& other) noexcept {
  std::swap(data_, other.data_);
  std::swap(size_, other.size_);
  return *this;
}

}  // namespace unisono

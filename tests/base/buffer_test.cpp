// What memory costs: a large buffer's what is in use of it; a mapped file's can be let go, and is read again.
#include "base/buffer.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <vector>

namespace unisono {
namespace {

// Bytes that stand in this process's memory: of files, and its own.
struct Memory {
  size_t of_files = 0, own = 0;
};
Memory memory() {
  std::ifstream file("/proc/self/statm");
  size_t size = 0, resident = 0, shared = 0;
  file >> size >> resident >> shared;
  const auto page = static_cast<size_t>(::sysconf(_SC_PAGESIZE));
  return {shared * page, (resident - shared) * page};
}

TEST(Buffer, IsZeroAndAligned) {
  for (const size_t bytes : {1, 63, 64, 1000, 131071, 131072, 1 << 20, (1 << 21) - 1, 1 << 21, 5000000}) {
    const Buffer buffer(bytes);
    EXPECT_EQ(buffer.size(), bytes);
    EXPECT_EQ(reinterpret_cast<uintptr_t>(buffer.data()) % (bytes < (1 << 21) ? 64 : 1 << 21), 0u);
    EXPECT_TRUE(std::all_of(buffer.data(), buffer.data() + bytes, [](std::byte b) { return b == std::byte{0}; }));
  }
}

TEST(Buffer, LargeMemoryBecomesResidentWithUse) {
  std::string huge_pages;
  std::getline(std::ifstream("/sys/kernel/mm/transparent_hugepage/enabled"), huge_pages);
  if (huge_pages.find("[always]") != std::string::npos) GTEST_SKIP() << "this system takes huge pages unasked";
  constexpr size_t kHugePage = size_t{2} << 20;
  for (const size_t bytes : {kHugePage / 2, kHugePage + 5000, 4 * kHugePage + kHugePage / 2}) {
    memory();  // the first call takes some itself
    const size_t before = memory().own;
    Buffer buffer(bytes);
    buffer.data()[bytes - 1] = std::byte{1};  // the last page, which is no huge one
    EXPECT_LT(memory().own, before + kHugePage / 4) << bytes;
  }
}

TEST(MappedFile, LetsGoOfMemoryAndReadsItAgain) {
  constexpr size_t kBytes = size_t{8} << 20;
  const std::string path =
      (std::filesystem::temp_directory_path() / ("unisono_buffer_" + std::to_string(::getpid()))).string();
  std::vector<char> content(kBytes);
  for (size_t i = 0; i < kBytes; i++) content[i] = static_cast<char>(i * 7 + i / 4096);
  std::ofstream(path, std::ios::binary).write(content.data(), kBytes);
  auto file = MappedFile::open(path);
  ASSERT_TRUE(file.ok());
  const auto equal = [&] { return std::memcmp(file->bytes().data(), content.data(), kBytes) == 0; };
  EXPECT_TRUE(equal());
  file->release(file->bytes().subspan(100, 50));  // its page
  EXPECT_TRUE(equal());
  memory();  // the code for it is a file's memory too: it is there from now on
  const size_t before = memory().of_files;
  file->release(file->bytes().subspan(100, kBytes - 200));  // its first and last page are not whole, and go, too
  EXPECT_LE(memory().of_files + kBytes, before);
  file->release(file->bytes().last(0));
  EXPECT_TRUE(equal());
  std::filesystem::remove(path);
}

}  // namespace
}  // namespace unisono

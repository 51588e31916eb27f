// A mapped file's memory: let go, and read again.
#include "base/buffer.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstring>
#include <filesystem>
#include <fstream>
#include <vector>

namespace unisono {
namespace {

// Bytes of files that stand in this process's memory.
size_t file_memory() {
  std::ifstream file("/proc/self/statm");
  size_t size = 0, resident = 0, shared = 0;
  file >> size >> resident >> shared;
  return shared * static_cast<size_t>(::sysconf(_SC_PAGESIZE));
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
  file_memory();  // the code for it is a file's memory too: it is there from now on
  const size_t before = file_memory();
  file->release(file->bytes().subspan(100, kBytes - 200));  // its first and last page are not whole, and go, too
  EXPECT_LE(file_memory() + kBytes, before);
  file->release(file->bytes().last(0));
  EXPECT_TRUE(equal());
  std::filesystem::remove(path);
}

}  // namespace
}  // namespace unisono

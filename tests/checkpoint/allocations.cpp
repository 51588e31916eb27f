#include "checkpoint/allocations.h"

#include <atomic>
#include <cstdlib>
#include <new>

namespace {
std::atomic<size_t> g_allocated{0};
}  // namespace

size_t unisono::testing::bytes_allocated() { return g_allocated; }

// The array forms end here; the aligned ones don't and stay uncounted.
void* operator new(size_t bytes) {
  g_allocated += bytes;
  if (void* memory = std::malloc(bytes == 0 ? 1 : bytes)) return memory;
  throw std::bad_alloc();
}
void* operator new(size_t bytes, const std::nothrow_t&) noexcept {
  g_allocated += bytes;
  return std::malloc(bytes == 0 ? 1 : bytes);
}
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, size_t) noexcept { std::free(memory); }

#include "base/check.h"

#include <cstdio>
#include <cstdlib>

namespace unisono {

void check_failed(const char* what, const char* file, int line, const char* function) {
  std::fprintf(stderr, "unisono: bug: %s (%s:%d in %s)\n", what, file, line, function);
  std::abort();
}

}  // namespace unisono

#include "base/check.h"

#include <cstdio>
#include <cstdlib>

namespace unisono {

void check_failed(const char* what, const std::source_location& where) {
  std::fprintf(stderr, "unisono: bug: %s (%s:%u in %s)\n", what, where.file_name(), static_cast<unsigned>(where.line()),
               where.function_name());
  std::abort();
}

}  // namespace unisono

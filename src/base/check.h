// check(): for our own bugs, on in release builds too. Never reachable by input: what a user gives us becomes an Error.
#pragma once

namespace unisono {

// Prints the broken promise with its place to stderr and aborts.
[[noreturn]] void check_failed(const char* what, const char* file, int line, const char* function);

// The place is the caller's. These builtins and not std::source_location, which Clang 14 (the fuzz builds) doesn't have.
inline void check(bool holds, const char* what, const char* file = __builtin_FILE(), int line = __builtin_LINE(),
                  const char* function = __builtin_FUNCTION()) {
  if (!holds) [[unlikely]]
    check_failed(what, file, line, function);
}

}  // namespace unisono

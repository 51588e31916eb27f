// check(): for our own bugs, on in release builds too. Never reachable by input: what a user gives us becomes an Error.
#pragma once

#include <source_location>

namespace unisono {

// Prints the broken promise with its place to stderr and aborts.
[[noreturn]] void check_failed(const char* what, const std::source_location& where);

inline void check(bool holds, const char* what, const std::source_location& where = std::source_location::current()) {
  if (!holds) [[unlikely]]
    check_failed(what, where);
}

}  // namespace unisono

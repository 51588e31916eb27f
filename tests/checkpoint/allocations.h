// How much memory this test program has asked for, to hold the reader to its promise about memory.
#pragma once

#include <cstddef>

namespace unisono::testing {

// Bytes asked for by operator new since the program began, given back or not.
size_t bytes_allocated();

}  // namespace unisono::testing

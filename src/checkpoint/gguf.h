// Reads the GGUF format, versions 2 and 3, little-endian. Whatever a file says is bounded by the file's own size before
// anything is allocated for it: memory stays within a small multiple of the metadata's bytes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "base/result.h"
#include "checkpoint/checkpoint.h"
#include "checkpoint/cursor.h"

namespace unisono::checkpoint {

struct Gguf {
  std::vector<Entry> metadata{};
  std::vector<NamedTensor> tensors{};
};

// Keys and tensor names are each there once, tensors lie in the file, aligned, and share no byte.
Result<Gguf> read_gguf(std::span<const std::byte> file);

// The steps of read_gguf, each from the cursor's place.

// One key and its value; `number` (from 1) names the entry where its key can't be read.
Result<Entry> read_entry(Cursor& cursor, uint64_t number);

// `count` descriptions of tensors, then their data from the next multiple of `alignment` in the file on.
Result<std::vector<NamedTensor>> read_tensors(Cursor& cursor, uint64_t count, uint64_t alignment,
                                              std::span<const std::byte> file);

}  // namespace unisono::checkpoint

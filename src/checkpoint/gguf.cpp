#include "checkpoint/gguf.h"

#include <bit>
#include <string>
#include <utility>

#include "checkpoint/name_index.h"
#include "checkpoint/sentences.h"

namespace unisono::checkpoint {

namespace {

constexpr uint32_t kMagic = 0x46554747;  // "GGUF"
constexpr uint64_t kDefaultAlignment = 32;
constexpr uint64_t kMaxAlignment = 1 << 24;  // of a huge page and more; beyond, a file would be mostly padding
constexpr uint64_t kLeastEntry = 13;         // no name, a type and a value of one byte

struct Header {
  uint64_t tensors = 0;
  uint64_t entries = 0;
};

Result<Header> read_header(Cursor& cursor, size_t file_bytes) {
  uint32_t magic = 0;
  if (!cursor.read(magic) || magic != kMagic) {
    return Error{"This is not a GGUF file: it doesn't begin with the letters GGUF."};
  }
  uint32_t version = 0;
  Header header;
  if (!cursor.read(version)) return Error{"The file ends within its header: it is cut short."};
  if (version != 0 && (version & 0xFFFF) == 0) {
    return Error{"The file is big-endian GGUF; only little-endian files are supported: convert it first."};
  }
  if (version != 2 && version != 3) {
    return Error{"The file is GGUF version " + std::to_string(version) +
                 "; versions 2 and 3 are supported: convert it again."};
  }
  if (!cursor.read(header.tensors) || !cursor.read(header.entries)) {
    return Error{"The file ends within its header: it is cut short."};
  }
  if (header.entries > cursor.left() / kLeastEntry) {
    return Error{"The header announces " + std::to_string(header.entries) + " metadata keys, more than a file of " +
                 std::to_string(file_bytes) + " bytes can hold: the file is cut short or damaged."};
  }
  return header;
}

Result<std::vector<Entry>> read_metadata(Cursor& cursor, uint64_t count) {
  std::vector<Entry> metadata;
  metadata.reserve(count);
  for (uint64_t i = 1; i <= count; i++) {
    auto entry = read_entry(cursor, i);
    if (!entry) return entry.error();
    metadata.push_back(std::move(*entry));
  }
  return metadata;
}

const Value* find(const std::vector<Entry>& metadata, std::string_view key) {
  for (const Entry& entry : metadata) {
    if (entry.key == key) return &entry.value;
  }
  return nullptr;
}

Result<uint64_t> read_alignment(const std::vector<Entry>& metadata) {
  constexpr std::string_view kKey = "general.alignment";
  const Value* value = find(metadata, kKey);
  if (value == nullptr) return kDefaultAlignment;
  const auto* wanted = std::get_if<int64_t>(value);
  if (wanted == nullptr) return key_error(kKey, "is not an integer: the alignment of tensors can't be told");
  const auto alignment = static_cast<uint64_t>(*wanted);
  if (*wanted < 8 || alignment > kMaxAlignment || !std::has_single_bit(alignment)) {
    return key_error(
        kKey, "is " + std::to_string(*wanted) + "; it must be a power of two from 8 to " + std::to_string(kMaxAlignment));
  }
  return alignment;
}

Result<void> refuse_splits(const std::vector<Entry>& metadata) {
  constexpr std::string_view kKey = "split.count";
  const Value* value = find(metadata, kKey);
  if (value == nullptr) return {};
  const auto* count = std::get_if<int64_t>(value);
  if (count == nullptr || *count < 0) return key_error(kKey, "is not a count of files");
  if (*count <= 1) return {};
  return key_error(kKey, "says that this file is one of " + std::to_string(*count) +
                             " parts of a model; models in several files are not supported: merge the parts into one file");
}

}  // namespace

Result<Gguf> read_gguf(std::span<const std::byte> file) {
  Cursor cursor(file);
  const auto header = read_header(cursor, file.size());
  if (!header) return header.error();
  auto metadata = read_metadata(cursor, header->entries);
  if (!metadata) return metadata.error();
  const NameIndex keys(*metadata, [](const Entry& e) { return e.key; });
  if (const auto twice = keys.repeated()) return key_error(*twice, "is there more than once: the file is damaged");
  if (auto whole = refuse_splits(*metadata); !whole) return whole.error();
  const auto alignment = read_alignment(*metadata);
  if (!alignment) return alignment.error();
  auto tensors = read_tensors(cursor, header->tensors, *alignment, file);
  if (!tensors) return tensors.error();
  return Gguf{std::move(*metadata), std::move(*tensors)};
}

}  // namespace unisono::checkpoint

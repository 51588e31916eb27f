// Descriptions of tensors in a GGUF file: each is checked by itself, then all for their place in the file.
#include <algorithm>
#include <limits>
#include <string>

#include "base/quoted.h"
#include "checkpoint/gguf.h"
#include "checkpoint/gguf_types.h"
#include "checkpoint/name_index.h"
#include "checkpoint/sentences.h"

namespace unisono::checkpoint {

namespace {

constexpr uint64_t kLeastDescription = 8 + 4 + 8 + 4 + 8;  // one dimension and no name
constexpr size_t kMaxName = 65535;
constexpr int64_t kMaxElements = std::numeric_limits<int64_t>::max();

struct Described {
  NamedTensor tensor{};
  uint64_t offset = 0;  // from the beginning of the data
  uint64_t bytes = 0;
};

Error cut_short(std::string_view name) {
  return tensor_error(name, "has its description beyond the end of the file: the file is cut short or damaged");
}

Result<void> read_dims(Cursor& cursor, NamedTensor& tensor) {
  uint32_t n_dims = 0;
  if (!cursor.read(n_dims)) return cut_short(tensor.name);
  if (n_dims < 1 || n_dims > tensor.view.dims.size()) {
    return tensor_error(tensor.name, "has " + std::to_string(n_dims) + " dimensions; 1 to 4 are supported");
  }
  tensor.view.n_dims = static_cast<int>(n_dims);
  int64_t elements = 1;
  for (uint32_t i = n_dims; i-- > 0;) {  // innermost first in the file
    uint64_t dim = 0;
    if (!cursor.read(dim)) return cut_short(tensor.name);
    if (dim == 0) return tensor_error(tensor.name, "has a dimension of 0: it is empty");
    if (dim > static_cast<uint64_t>(kMaxElements / elements)) {
      return tensor_error(tensor.name, "has more elements than can be counted: the file is damaged");
    }
    elements *= static_cast<int64_t>(dim);
    tensor.view.dims[i] = static_cast<int64_t>(dim);
  }
  return {};
}

Result<void> read_type(Cursor& cursor, NamedTensor& tensor) {
  uint32_t number = 0;
  if (!cursor.read(number)) return cut_short(tensor.name);
  const auto type = tensor_type(number);
  if (!type) {
    return tensor_error(tensor.name, "has type " + tensor_type_name(number) +
                                         ", which is not supported (supported: " + supported_types() + ")");
  }
  tensor.view.type = *type;
  const int block = info(*type).block_elems;
  if (tensor.view.columns() % block != 0) {
    return tensor_error(tensor.name, "of type " + std::string(info(*type).name) + " has rows of " +
                                         std::to_string(tensor.view.columns()) + " elements, which is no multiple of its " +
                                         std::to_string(block) + "-element blocks");
  }
  return {};
}

// Elements fit in 63 bits; their bytes need not.
Result<uint64_t> count_bytes(const NamedTensor& tensor) {
  const DTypeInfo& type = info(tensor.view.type);
  const auto blocks = static_cast<uint64_t>(tensor.view.rows() * (tensor.view.columns() / type.block_elems));
  const auto block_bytes = static_cast<uint64_t>(type.block_bytes);
  if (blocks > std::numeric_limits<uint64_t>::max() / block_bytes) {
    return tensor_error(tensor.name, "has more bytes than can be counted: the file is damaged");
  }
  return blocks * block_bytes;
}

Result<Described> read_description(Cursor& cursor, uint64_t number, uint64_t alignment) {
  Described described;
  NamedTensor& tensor = described.tensor;
  if (!cursor.read_text(tensor.name)) {
    return Error{"The name of tensor " + std::to_string(number) +
                 " reaches beyond the end of the file: the file is cut short or damaged."};
  }
  if (tensor.name.empty()) return Error{"Tensor " + std::to_string(number) + " has no name: the file is damaged."};
  if (tensor.name.size() > kMaxName) {
    return tensor_error(tensor.name.substr(0, kMaxName), "has a name of " + std::to_string(tensor.name.size()) +
                                                             " bytes; " + std::to_string(kMaxName) + " are supported");
  }
  if (auto dims = read_dims(cursor, tensor); !dims) return dims.error();
  if (auto type = read_type(cursor, tensor); !type) return type.error();
  const auto bytes = count_bytes(tensor);
  if (!bytes) return bytes.error();
  described.bytes = *bytes;
  if (!cursor.read(described.offset)) return cut_short(tensor.name);
  if (described.offset % alignment != 0) {
    return tensor_error(tensor.name, "begins at offset " + std::to_string(described.offset) +
                                         ", which is no multiple of the file's alignment of " + std::to_string(alignment));
  }
  return described;
}

// Tensor data begins at byte `begin` of the file, which may lie beyond its end.
Result<void> place(std::vector<Described>& all, std::span<const std::byte> file, uint64_t begin) {
  for (Described& one : all) {
    uint64_t end = 0;
    if (__builtin_add_overflow(begin, one.offset, &end) || __builtin_add_overflow(end, one.bytes, &end)) {
      return tensor_error(one.tensor.name, "lies at offset " + std::to_string(one.offset) +
                                               ", beyond the end of any file: the file is damaged");
    }
    if (end > file.size()) {
      return tensor_error(one.tensor.name, "reaches " + std::to_string(end - file.size()) +
                                               " bytes beyond the end of the file: the file is cut short");
    }
    one.tensor.view.data = file.data() + begin + one.offset;
  }
  return {};
}

// After place(): no offset plus bytes wraps.
Result<void> refuse_overlaps(const std::vector<Described>& all) {
  std::vector<const Described*> order(all.size());
  std::transform(all.begin(), all.end(), order.begin(), [](const Described& one) { return &one; });
  std::sort(order.begin(), order.end(),
            [](const Described* a, const Described* b) { return a->offset != b->offset ? a->offset < b->offset : a < b; });
  for (size_t i = 1; i < order.size(); i++) {
    if (order[i - 1]->offset + order[i - 1]->bytes <= order[i]->offset) continue;
    return tensor_error(order[i]->tensor.name,
                        "shares bytes with tensor " + quoted(order[i - 1]->tensor.name) + ": the file is damaged");
  }
  return {};
}

}  // namespace

Result<std::vector<NamedTensor>> read_tensors(Cursor& cursor, uint64_t count, uint64_t alignment,
                                              std::span<const std::byte> file) {
  if (count > cursor.left() / kLeastDescription) {
    return Error{"The header announces " + std::to_string(count) + " tensors, more than a file of " +
                 std::to_string(file.size()) + " bytes can hold: the file is cut short or damaged."};
  }
  std::vector<Described> all;
  all.reserve(count);
  for (uint64_t i = 1; i <= count; i++) {
    auto described = read_description(cursor, i, alignment);
    if (!described) return described.error();
    all.push_back(*described);
  }
  const uint64_t begin = (cursor.position() + alignment - 1) / alignment * alignment;
  if (auto placed = place(all, file, begin); !placed) return placed.error();
  if (auto apart = refuse_overlaps(all); !apart) return apart.error();
  std::vector<NamedTensor> tensors(all.size());
  std::transform(all.begin(), all.end(), tensors.begin(), [](const Described& one) { return one.tensor; });
  const NameIndex names(tensors, [](const NamedTensor& t) { return t.name; });
  if (const auto twice = names.repeated()) return tensor_error(*twice, "is there more than once: the file is damaged");
  return tensors;
}

}  // namespace unisono::checkpoint

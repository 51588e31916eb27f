// A model file opened: its metadata and its tensors, as views into the mapped file. Everything a file can say wrong is
// found here and told in one sentence naming the key or the tensor.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/buffer.h"
#include "base/result.h"
#include "base/tensor.h"

namespace unisono::checkpoint {

// A metadata array. Strings view the mapped file.
using Array = std::variant<std::vector<std::string_view>, std::vector<int64_t>, std::vector<uint64_t>, std::vector<double>,
                           std::vector<bool>>;
// A metadata value. All integer widths are widened; u64 values above the range of int64 stay u64.
using Value = std::variant<int64_t, uint64_t, double, bool, std::string_view, Array>;

struct NamedTensor {
  std::string_view name{};
  TensorView view{};
};

struct Entry {
  std::string_view key{};
  Value value{};
};

class Checkpoint {
 public:
  // Opens a file by its content (GGUF v2 and v3). Costs time in proportion to the metadata, not to the weights. Strings and
  // names are the file's bytes, which need not be UTF-8. Tensors begin at multiples of 8 bytes at least and share no byte.
  // Errors name the file.
  static Result<Checkpoint> open(const std::string& path);
  // The same from memory, which must outlive the checkpoint: for tests and fuzzing. Tensors are as aligned as it is.
  static Result<Checkpoint> parse(std::span<const std::byte> file);

  Checkpoint(Checkpoint&&) noexcept;
  Checkpoint& operator=(Checkpoint&&) noexcept;
  ~Checkpoint();

  const std::vector<Entry>& metadata() const;       // in file order
  const std::vector<NamedTensor>& tensors() const;  // in file order

  const TensorView* find(std::string_view name) const;  // null: absent
  void release(std::span<const std::byte> part) const;  // of a tensor: may leave memory until it is read again
  const Value* value(std::string_view key) const;       // null: absent

  // For who has read what it needs: there is no metadata from here on, and its bytes may leave memory until they are read
  // again. Strings that were read still view the file.
  void forget_metadata();

  // Typed reads. Absent: nullopt. Present with another type or out of the range: an error naming the key.
  Result<std::optional<int64_t>> integer(std::string_view key, int64_t min, int64_t max) const;
  Result<std::optional<double>> number(std::string_view key) const;  // integers too; refused unless finite
  Result<std::optional<bool>> boolean(std::string_view key) const;
  Result<std::optional<std::string_view>> string(std::string_view key) const;
  Result<std::optional<std::vector<std::string_view>>> strings(std::string_view key) const;
  Result<std::optional<std::vector<double>>> numbers(std::string_view key) const;  // as number()
  Result<std::optional<std::vector<int64_t>>> integers(std::string_view key, int64_t min, int64_t max) const;

 private:
  struct Contents;
  explicit Checkpoint(std::unique_ptr<Contents> contents);
  std::unique_ptr<Contents> contents_;
};

}  // namespace unisono::checkpoint

// An opened model file: owns the mapping and finds metadata and tensors by name. What the bytes mean is gguf.h's affair.
#include "checkpoint/checkpoint.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <utility>

#include "checkpoint/gguf.h"
#include "checkpoint/name_index.h"
#include "checkpoint/sentences.h"

namespace unisono::checkpoint {

namespace {

// In the order of Value's and Array's alternatives.
constexpr const char* kKinds[] = {
    "an integer", "an integer above 2^63", "a floating-point number", "a truth value", "a string", "an array"};
constexpr const char* kArrayKinds[] = {"an array of strings", "an array of integers",
                                       "an array of integers, some above 2^63", "an array of floating-point numbers",
                                       "an array of truth values"};
static_assert(std::size(kKinds) == std::variant_size_v<Value> && std::size(kArrayKinds) == std::variant_size_v<Array>);

const char* kind(const Value& value) {
  const auto* array = std::get_if<Array>(&value);
  return array == nullptr ? kKinds[value.index()] : kArrayKinds[array->index()];
}

Error unexpected(std::string_view key, const Value& value, const char* expected) {
  return key_error(key, std::string("is ") + kind(value) + " where " + expected + " is expected");
}

Error out_of_range(std::string_view key, const std::string& where, const std::string& value, int64_t min, int64_t max) {
  return key_error(key, where + value + " where " + std::to_string(min) + " to " + std::to_string(max) + " is expected");
}

// Copies an array of T, or says that the value is none.
template <class T>
Result<std::optional<std::vector<T>>> copy_array(std::string_view key, const Value* value, const char* expected) {
  using Found = std::optional<std::vector<T>>;
  if (value == nullptr) return Found{};
  if (const auto* array = std::get_if<Array>(value)) {
    if (const auto* items = std::get_if<std::vector<T>>(array)) return Found{*items};
  }
  return unexpected(key, *value, expected);
}

}  // namespace

struct Checkpoint::Contents {
  std::optional<MappedFile> file{};  // absent: the bytes are the caller's
  Gguf gguf{};
  NameIndex keys{};
  NameIndex names{};
};

Checkpoint::Checkpoint(std::unique_ptr<Contents> contents) : contents_(std::move(contents)) {}
Checkpoint::Checkpoint(Checkpoint&&) noexcept = default;
Checkpoint& Checkpoint::operator=(Checkpoint&&) noexcept = default;
Checkpoint::~Checkpoint() = default;

Result<Checkpoint> Checkpoint::open(const std::string& path) {
  auto file = MappedFile::open(path);
  if (!file) return file.error();
  auto checkpoint = parse(file->bytes());
  if (!checkpoint) return Error{"'" + path + "': " + checkpoint.error().message, checkpoint.error().subject};
  checkpoint->contents_->file.emplace(std::move(*file));
  return checkpoint;
}

void Checkpoint::release(std::span<const std::byte> part) const {
  if (contents_->file) contents_->file->release(part);
}

Result<Checkpoint> Checkpoint::parse(std::span<const std::byte> file) {
  auto gguf = read_gguf(file);
  if (!gguf) return gguf.error();
  auto contents = std::make_unique<Contents>();
  contents->gguf = std::move(*gguf);
  contents->keys = NameIndex(contents->gguf.metadata, [](const Entry& e) { return e.key; });
  contents->names = NameIndex(contents->gguf.tensors, [](const NamedTensor& t) { return t.name; });
  return Checkpoint(std::move(contents));
}

const std::vector<Entry>& Checkpoint::metadata() const { return contents_->gguf.metadata; }

const std::vector<NamedTensor>& Checkpoint::tensors() const { return contents_->gguf.tensors; }

const TensorView* Checkpoint::find(std::string_view name) const {
  const auto at = contents_->names.find(name);
  return at ? &contents_->gguf.tensors[*at].view : nullptr;
}

const Value* Checkpoint::value(std::string_view key) const {
  const auto at = contents_->keys.find(key);
  return at ? &contents_->gguf.metadata[*at].value : nullptr;
}

void Checkpoint::forget_metadata() {
  contents_->keys = {};
  contents_->gguf.metadata = std::vector<Entry>();
  if (!contents_->file) return;
  std::span<const std::byte> before_tensors = contents_->file->bytes();
  for (const NamedTensor& tensor : contents_->gguf.tensors)
    before_tensors = before_tensors.first(
        std::min(before_tensors.size(), static_cast<size_t>(tensor.view.data - before_tensors.data())));
  release(before_tensors);
}

Result<std::optional<int64_t>> Checkpoint::integer(std::string_view key, int64_t min, int64_t max) const {
  const Value* found = value(key);
  if (found == nullptr) return std::optional<int64_t>{};
  if (const auto* above = std::get_if<uint64_t>(found)) return out_of_range(key, "is ", std::to_string(*above), min, max);
  const auto* number = std::get_if<int64_t>(found);
  if (number == nullptr) return unexpected(key, *found, "an integer");
  if (*number < min || *number > max) return out_of_range(key, "is ", std::to_string(*number), min, max);
  return std::optional(*number);
}

Result<std::optional<double>> Checkpoint::number(std::string_view key) const {
  const Value* found = value(key);
  if (found == nullptr) return std::optional<double>{};
  if (const auto* integer = std::get_if<int64_t>(found)) return std::optional(static_cast<double>(*integer));
  if (const auto* above = std::get_if<uint64_t>(found)) return std::optional(static_cast<double>(*above));
  const auto* number = std::get_if<double>(found);
  if (number == nullptr) return unexpected(key, *found, "a number");
  if (!std::isfinite(*number)) return key_error(key, "is not a finite number");
  return std::optional(*number);
}

Result<std::optional<bool>> Checkpoint::boolean(std::string_view key) const {
  const Value* found = value(key);
  if (found == nullptr) return std::optional<bool>{};
  if (const auto* truth = std::get_if<bool>(found)) return std::optional(*truth);
  return unexpected(key, *found, "a truth value");
}

Result<std::optional<std::string_view>> Checkpoint::string(std::string_view key) const {
  const Value* found = value(key);
  if (found == nullptr) return std::optional<std::string_view>{};
  if (const auto* text = std::get_if<std::string_view>(found)) return std::optional(*text);
  return unexpected(key, *found, "a string");
}

Result<std::optional<std::vector<std::string_view>>> Checkpoint::strings(std::string_view key) const {
  return copy_array<std::string_view>(key, value(key), "an array of strings");
}

Result<std::optional<std::vector<double>>> Checkpoint::numbers(std::string_view key) const {
  const Value* found = value(key);
  if (found != nullptr && std::holds_alternative<Array>(*found)) {
    const auto& array = std::get<Array>(*found);
    if (const auto* integers = std::get_if<std::vector<int64_t>>(&array)) {
      return std::optional(std::vector<double>(integers->begin(), integers->end()));
    }
    if (const auto* integers = std::get_if<std::vector<uint64_t>>(&array)) {
      return std::optional(std::vector<double>(integers->begin(), integers->end()));
    }
  }
  auto numbers = copy_array<double>(key, found, "an array of numbers");
  if (!numbers || !numbers->has_value()) return numbers;
  for (size_t i = 0; i < (*numbers)->size(); i++) {
    if (!std::isfinite((**numbers)[i])) return key_error(key, "holds no finite number at element " + std::to_string(i));
  }
  return numbers;
}

Result<std::optional<std::vector<int64_t>>> Checkpoint::integers(std::string_view key, int64_t min, int64_t max) const {
  auto integers = copy_array<int64_t>(key, value(key), "an array of integers");
  if (!integers || !integers->has_value()) return integers;
  for (size_t i = 0; i < (*integers)->size(); i++) {
    const int64_t number = (**integers)[i];
    if (number >= min && number <= max) continue;
    return out_of_range(key, "holds, at element " + std::to_string(i) + ", ", std::to_string(number), min, max);
  }
  return integers;
}

}  // namespace unisono::checkpoint

// Any bytes as a GGUF file: refused with a sentence, or sound down to the last byte of every tensor and string.
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "base/check.h"
#include "checkpoint/checkpoint.h"

namespace {

using namespace unisono;
using namespace unisono::checkpoint;

// Reads every byte, so that a view beyond the file is seen by the address sanitizer.
void touch(const void* data, size_t bytes) {
  for (size_t i = 0; i < bytes; i++) (void)static_cast<const volatile uint8_t*>(data)[i];
}

void read_all(const Checkpoint& file, std::string_view key) {
  (void)file.integer(key, 0, 1000);
  (void)file.number(key);
  (void)file.boolean(key);
  (void)file.numbers(key);
  (void)file.integers(key, 0, 1000);
  touch(key.data(), key.size());
  if (const auto text = file.string(key); text.ok() && text->has_value()) touch((*text)->data(), (*text)->size());
  const auto texts = file.strings(key);
  if (!texts.ok() || !texts->has_value()) return;
  for (const std::string_view text : **texts) touch(text.data(), text.size());
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const auto file = Checkpoint::parse(std::as_bytes(std::span(data, size)));
  if (!file.ok()) {
    const std::string& message = file.error().message;
    check(message.size() > 10 && message.back() == '.', "a refusal without a sentence");
    return 0;
  }
  for (const Entry& entry : file->metadata()) {
    check(file->value(entry.key) == &entry.value, "a key that isn't found, or is there twice");
    read_all(*file, entry.key);
  }
  size_t bytes = 0;
  for (const NamedTensor& tensor : file->tensors()) {
    check(file->find(tensor.name) == &tensor.view, "a tensor that isn't found, or is there twice");
    touch(tensor.view.data, tensor.view.bytes());
    bytes += tensor.view.bytes();
  }
  check(bytes <= size, "tensors that share bytes");
  return 0;
}

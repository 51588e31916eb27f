#include "checkpoint/sentences.h"

#include "base/quoted.h"

namespace unisono::checkpoint {

Error key_error(std::string_view key, const std::string& rest) {
  return {"Key " + quoted(key) + " " + rest + ".", std::string(key)};
}

Error tensor_error(std::string_view name, const std::string& rest) {
  return {"Tensor " + quoted(name) + " " + rest + ".", std::string(name)};
}

}  // namespace unisono::checkpoint

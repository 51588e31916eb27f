// Many short texts by number, one behind the other in one piece of memory: a vocabulary's.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <string>
#include <string_view>
#include <vector>

#include "base/check.h"

namespace unisono {

class Texts {
 public:
  static constexpr size_t kMaxBytes = std::numeric_limits<uint32_t>::max();  // of all together

  void reserve(size_t texts, size_t bytes) {
    ends_.reserve(texts + 1);
    bytes_.reserve(bytes);
  }
  void add(std::string_view text) {
    check(text.size() <= kMaxBytes - bytes_.size(), "texts that lie together are not larger than their limit");
    bytes_ += text;
    ends_.push_back(static_cast<uint32_t>(bytes_.size()));
  }

  size_t size() const { return ends_.size() - 1; }
  // Valid until the next add().
  std::string_view operator[](size_t i) const { return {bytes_.data() + ends_[i], ends_[i + 1] - ends_[i]}; }

 private:
  std::string bytes_{};
  std::vector<uint32_t> ends_{0};  // of the text before each
};

}  // namespace unisono

#include "engine/stop_strings.h"

#include <algorithm>

#include "base/check.h"

namespace unisono::engine {

namespace {

// The longest beginning of `text` that ends the seen text with `c` added, when `matched` of it ended it before.
uint32_t advance(std::string_view text, const std::vector<uint32_t>& fallback, uint32_t matched, char c) {
  while (matched > 0 && text[matched] != c) matched = fallback[matched];
  return text[matched] == c ? matched + 1 : 0;
}

}  // namespace

StopStrings::StopStrings(const std::vector<std::string>& strings) {
  for (const std::string& text : strings) {
    check(!text.empty(), "stop strings aren't empty");
    Pattern& pattern = patterns_.emplace_back(Pattern{.text = text});
    pattern.fallback.assign(text.size() + 1, 0);
    for (size_t n = 1; n < text.size(); n++)
      pattern.fallback[n + 1] = advance(text, pattern.fallback, pattern.fallback[n], text[n]);
  }
}

std::optional<size_t> StopStrings::push(std::string_view piece, std::string& out) {
  const size_t held_before = held_.size();
  held_ += piece;
  std::optional<size_t> found;
  size_t found_start = 0, longest = 0;
  for (size_t s = 0; s < patterns_.size(); s++) {
    Pattern& pattern = patterns_[s];
    for (size_t i = 0; i < piece.size(); i++) {
      pattern.matched = advance(pattern.text, pattern.fallback, pattern.matched, piece[i]);
      if (pattern.matched < pattern.text.size()) continue;
      // The first completion of a string is also its earliest start.
      const size_t start = held_before + i + 1 - pattern.text.size();
      if (!found || start < found_start) {
        found = s;
        found_start = start;
      }
      break;
    }
    longest = std::max<size_t>(longest, pattern.matched);
  }
  const size_t sendable = found ? found_start : held_.size() - longest;
  out.append(held_, 0, sendable);
  held_.erase(0, found ? std::string::npos : sendable);
  return found;
}

void StopStrings::finish(std::string& out) {
  out += held_;
  held_.clear();
}

}  // namespace unisono::engine

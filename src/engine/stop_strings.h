// Finds stop strings in a text that comes in pieces, and says how much of it can no longer be part of one. Time is linear
// in the text, whatever the strings are (Knuth-Morris-Pratt).
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace unisono::engine {

class StopStrings {
 public:
  // Non-empty strings, each of which starts like a UTF-8 character, so that a text of whole characters is cut between
  // characters. They must outlive this.
  explicit StopStrings(const std::vector<std::string>& strings);

  // Appends to `out` what can be sent now. All but the longest end of the text that begins a stop string is sent. When
  // strings are complete in the text so far: what comes before the one that starts first (of those the first in the list),
  // and that one's index; nothing may be pushed after it.
  std::optional<size_t> push(std::string_view piece, std::string& out);
  // The text ends without a match: what was held back.
  void finish(std::string& out);

 private:
  struct Pattern {
    std::string_view text{};
    std::vector<uint32_t> fallback{};  // [length + 1] of each prefix, the longest proper end that begins it
    uint32_t matched = 0;              // length of the longest end of the text that begins this string
  };
  std::vector<Pattern> patterns_{};
  std::string held_{};
};

}  // namespace unisono::engine

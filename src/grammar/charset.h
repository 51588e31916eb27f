// Sets of Unicode scalar values, as sorted ranges. Surrogates are never members: they are no text.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

namespace unisono::grammar {

inline constexpr uint32_t kMaxChar = 0x10FFFF;

struct CharRange {
  uint32_t first, last;
  bool operator==(const CharRange&) const = default;
};

class CharSet {
 public:
  CharSet() = default;  // no character
  // In any order, overlapping or not; surrogates are left out.
  explicit CharSet(std::vector<CharRange> ranges);
  static const CharSet& any();
  // \d \w \s as ECMA-262 has them: digits and word characters in ASCII, white space in Unicode.
  static const CharSet& digits();
  static const CharSet& word();
  static const CharSet& space();
  // \p{...}: a general category by its short or long name, with `gc=` or not; false: an unknown name.
  static bool property(std::string_view name, CharSet* out);

  CharSet complement() const;
  CharSet united(const CharSet& other) const;
  CharSet intersected(const CharSet& other) const;
  bool contains(uint32_t c) const;
  bool empty() const { return ranges_.empty(); }
  const std::vector<CharRange>& ranges() const { return ranges_; }
  bool operator==(const CharSet&) const = default;

 private:
  std::vector<CharRange> ranges_{};
};

}  // namespace unisono::grammar

#include "grammar/charset.h"

#include <utf8proc.h>

#include <algorithm>
#include <array>

namespace unisono::grammar {

namespace {

constexpr uint32_t kFirstSurrogate = 0xD800, kLastSurrogate = 0xDFFF;

// utf8proc's categories in the order of its enumeration, with Unicode's long names.
constexpr struct {
  const char *short_name, *long_name;
} kCategories[] = {{"Cn", "Unassigned"},
                   {"Lu", "Uppercase_Letter"},
                   {"Ll", "Lowercase_Letter"},
                   {"Lt", "Titlecase_Letter"},
                   {"Lm", "Modifier_Letter"},
                   {"Lo", "Other_Letter"},
                   {"Mn", "Nonspacing_Mark"},
                   {"Mc", "Spacing_Mark"},
                   {"Me", "Enclosing_Mark"},
                   {"Nd", "Decimal_Number"},
                   {"Nl", "Letter_Number"},
                   {"No", "Other_Number"},
                   {"Pc", "Connector_Punctuation"},
                   {"Pd", "Dash_Punctuation"},
                   {"Ps", "Open_Punctuation"},
                   {"Pe", "Close_Punctuation"},
                   {"Pi", "Initial_Punctuation"},
                   {"Pf", "Final_Punctuation"},
                   {"Po", "Other_Punctuation"},
                   {"Sm", "Math_Symbol"},
                   {"Sc", "Currency_Symbol"},
                   {"Sk", "Modifier_Symbol"},
                   {"So", "Other_Symbol"},
                   {"Zs", "Space_Separator"},
                   {"Zl", "Line_Separator"},
                   {"Zp", "Paragraph_Separator"},
                   {"Cc", "Control"},
                   {"Cf", "Format"},
                   {"Cs", "Surrogate"},
                   {"Co", "Private_Use"}};

constexpr struct {
  char letter;
  const char* long_name;
} kGroups[] = {{'L', "Letter"}, {'M', "Mark"},      {'N', "Number"}, {'P', "Punctuation"},
               {'S', "Symbol"}, {'Z', "Separator"}, {'C', "Other"}};

// Made once: all of Unicode is looked at, which is too much for each \p of a pattern.
struct Properties {
  std::array<CharSet, std::size(kCategories)> categories{};
  std::array<CharSet, std::size(kGroups)> groups{};

  Properties() {
    std::array<std::vector<CharRange>, std::size(kCategories)> ranges;
    for (uint32_t c = 0; c <= kMaxChar; ++c) {
      std::vector<CharRange>& own = ranges[size_t(utf8proc_category(int32_t(c)))];
      if (!own.empty() && own.back().last + 1 == c)
        own.back().last = c;
      else
        own.push_back({c, c});
    }
    for (size_t i = 0; i < ranges.size(); ++i) {
      categories[i] = CharSet(std::move(ranges[i]));
      for (size_t g = 0; g < groups.size(); ++g)
        if (kCategories[i].short_name[0] == kGroups[g].letter) groups[g] = groups[g].united(categories[i]);
    }
  }
};

}  // namespace

CharSet::CharSet(std::vector<CharRange> ranges) {
  std::vector<CharRange> split;
  for (CharRange r : ranges) {
    if (r.first > r.last || r.first > kMaxChar) continue;
    r.last = std::min(r.last, kMaxChar);
    if (r.first < kFirstSurrogate) split.push_back({r.first, std::min(r.last, kFirstSurrogate - 1)});
    if (r.last > kLastSurrogate) split.push_back({std::max(r.first, kLastSurrogate + 1), r.last});
  }
  std::sort(split.begin(), split.end(), [](CharRange a, CharRange b) { return a.first < b.first; });
  for (const CharRange& r : split) {
    // The ends of the gap that surrogates leave count as neighbours, so that equal sets have equal ranges.
    if (!ranges_.empty() && r.first <= ranges_.back().last + 1)
      ranges_.back().last = std::max(ranges_.back().last, r.last);
    else
      ranges_.push_back(r);
  }
}

const CharSet& CharSet::any() {
  static const CharSet set({{0, kMaxChar}});
  return set;
}

const CharSet& CharSet::digits() {
  static const CharSet set({{'0', '9'}});
  return set;
}

const CharSet& CharSet::word() {
  static const CharSet set({{'0', '9'}, {'A', 'Z'}, {'_', '_'}, {'a', 'z'}});
  return set;
}

const CharSet& CharSet::space() {
  static const CharSet set({{9, 13},
                            {' ', ' '},
                            {0xA0, 0xA0},
                            {0x1680, 0x1680},
                            {0x2000, 0x200A},
                            {0x2028, 0x2029},
                            {0x202F, 0x202F},
                            {0x205F, 0x205F},
                            {0x3000, 0x3000},
                            {0xFEFF, 0xFEFF}});
  return set;
}

bool CharSet::property(std::string_view name, CharSet* out) {
  for (std::string_view prefix : {"gc=", "General_Category="})
    if (name.starts_with(prefix)) name.remove_prefix(prefix.size());
  static const Properties known;
  const CharSet* found = nullptr;
  for (size_t i = 0; i < std::size(kCategories); ++i)
    if (name == kCategories[i].short_name || name == kCategories[i].long_name) found = &known.categories[i];
  for (size_t g = 0; g < std::size(kGroups); ++g)
    if (name == kGroups[g].long_name || name == std::string_view(&kGroups[g].letter, 1)) found = &known.groups[g];
  static const CharSet ascii({{0, 127}});
  if (name == "Any") found = &any();
  if (name == "ASCII") found = &ascii;
  if (!found) return false;
  *out = *found;
  return true;
}

CharSet CharSet::complement() const {
  std::vector<CharRange> out;
  uint32_t from = 0;
  for (const CharRange& r : ranges_) {
    if (r.first > from) out.push_back({from, r.first - 1});
    from = r.last + 1;
  }
  if (from <= kMaxChar) out.push_back({from, kMaxChar});
  return CharSet(std::move(out));
}

CharSet CharSet::united(const CharSet& other) const {
  std::vector<CharRange> all = ranges_;
  all.insert(all.end(), other.ranges_.begin(), other.ranges_.end());
  return CharSet(std::move(all));
}

CharSet CharSet::intersected(const CharSet& other) const {
  std::vector<CharRange> out;
  for (size_t i = 0, j = 0; i < ranges_.size() && j < other.ranges_.size();) {
    const uint32_t first = std::max(ranges_[i].first, other.ranges_[j].first);
    const uint32_t last = std::min(ranges_[i].last, other.ranges_[j].last);
    if (first <= last) out.push_back({first, last});
    if (ranges_[i].last < other.ranges_[j].last)
      ++i;
    else
      ++j;
  }
  return CharSet(std::move(out));
}

bool CharSet::contains(uint32_t c) const {
  auto it = std::upper_bound(ranges_.begin(), ranges_.end(), c,
                             [](uint32_t value, const CharRange& r) { return value < r.first; });
  return it != ranges_.begin() && c <= std::prev(it)->last;
}

}  // namespace unisono::grammar

// Regular languages over Unicode characters, by derivatives: union, intersection and complement are exact, bounded
// repetition counts instead of expanding, and states are made when they are first asked for. It knows nothing of bytes,
// of JSON's escapes or of a pattern's notation (regex_parser.h).
#pragma once

#include <cstdint>
#include <deque>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "grammar/charset.h"

namespace unisono::grammar {

// A language, named by its simplified expression: equal ids are equal languages (not the other way round).
using RegexId = uint32_t;

class RegexPool {
 public:
  static constexpr RegexId kNothing = 0;  // no text
  static constexpr RegexId kEmpty = 1;    // the empty text
  static constexpr RegexId kAnyChar = 2;  // one character
  static constexpr RegexId kAll = 3;      // every text
  static constexpr uint32_t kUnbounded = UINT32_MAX;

  RegexPool();

  RegexId chars(const CharSet& set);
  RegexId concat(RegexId a, RegexId b);
  RegexId either(std::vector<RegexId> options);
  RegexId both(std::vector<RegexId> conditions);
  RegexId negate(RegexId a);
  RegexId repeat(RegexId a, uint32_t min, uint32_t max);  // min <= max
  RegexId text(std::string_view utf8);
  // Any of these texts (UTF-8), as a tree over their beginnings.
  RegexId any_of(std::vector<std::string_view> texts);

  // What follows each character: arcs[i] holds for the characters from `first` to the next arc's. next == kNothing: no
  // text of the language goes on so; every other next has at least one text.
  struct Arc {
    uint32_t first;
    RegexId next;
  };
  std::span<const Arc> arcs(RegexId a);
  RegexId next(RegexId a, uint32_t c);
  // A character in [first, last] may come next.
  bool any_next(RegexId a, uint32_t first, uint32_t last);

  bool nullable(RegexId a) const { return nodes_[a].nullable; }
  bool alive(RegexId a);  // holds at least one text
  bool matches(RegexId a, std::string_view utf8);
  // Any n characters may come next, n in 0..span; kUnbounded: any text at all. 0 says nothing.
  uint32_t free_span(RegexId a);
  // A count of any characters from none on: all texts up to a length.
  bool holds_all_short(RegexId a) const {
    return nodes_[a].kind == Kind::repeat && nodes_[a].a == kAnyChar && nodes_[a].b == 0;
  }
  // The number of texts, at most `cap`.
  uint64_t count(RegexId a, uint64_t cap);
  bool finite(RegexId a);  // surely finite; false says nothing

  // The work so far outgrew the budget: answers may be too narrow (never too wide). A compiler refuses then.
  bool exhausted() const { return exhausted_; }
  // nodes: expressions that may exist; steps: derivatives that may be taken from now on.
  void set_budget(size_t nodes, uint64_t steps) { budget_ = nodes, fuel_ = steps; }
  size_t size() const { return nodes_.size(); }

 private:
  enum class Kind : uint8_t { nothing, empty, chars, concat, either, both, negate, repeat };
  struct Node {
    Kind kind;
    bool nullable;
    bool boolean;  // an intersection or complement is inside, so that it may be empty
    uint32_t a, b,
        c;  // chars: set; concat: left, right; either, both: begin, end in lists_; negate: a; repeat: a, min, max
  };
  enum class Life : uint8_t { unknown, alive, dead };

  RegexId intern(Kind kind, uint32_t a, uint32_t b, uint32_t c, bool nullable, bool boolean);
  RegexId intern_list(Kind kind, std::vector<RegexId> items, bool nullable);
  std::span<const RegexId> list(const Node& n) const { return {lists_.data() + n.a, n.b}; }
  void first_sets(RegexId a, std::vector<uint32_t>& sets, int depth);
  RegexId derive(RegexId a, uint32_t c, int depth);
  bool first_visit(RegexId a);
  const std::vector<Arc>& raw_arcs(RegexId a);
  bool cofinite(RegexId a, int depth) const;
  uint32_t longest_excluded(RegexId a, int depth) const;
  bool prefix_total(RegexId a, int depth) const;

  std::deque<Node> nodes_{};
  std::vector<RegexId> lists_{};
  std::deque<CharSet> sets_{};
  std::unordered_multimap<uint64_t, RegexId> index_{};
  std::unordered_multimap<uint64_t, uint32_t> set_index_{};
  std::vector<Life> life_{};
  std::deque<std::vector<Arc>> raw_arcs_{}, arcs_{};
  // What one walk over shared expressions has met: valid where the stamp is the walk's.
  std::vector<uint32_t> stamps_{};
  std::vector<RegexId> derived_{};
  uint32_t stamp_ = 0;
  size_t budget_ = 200'000;
  uint64_t fuel_ = 1'000'000;
  bool exhausted_ = false;
};

// The next character of UTF-8 text, which moves on; kMaxChar + 1 if it is broken.
uint32_t next_char(std::string_view& text);
void append_utf8(std::string& out, uint32_t c);

}  // namespace unisono::grammar

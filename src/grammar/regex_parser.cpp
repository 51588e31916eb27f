#include "grammar/regex_parser.h"

#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace unisono::grammar {

namespace {

constexpr size_t kMaxPattern = 64 << 10;
constexpr int kMaxNesting = 128;
constexpr uint32_t kMaxCount = 100'000'000;

enum class Part : uint8_t { empty, set, sequence, choice, repeat, begin, end, ahead, not_ahead };

struct Ast {
  Part part = Part::empty;
  CharSet set{};
  uint32_t min = 0, max = 0;
  std::vector<std::unique_ptr<Ast>> items{};
  bool asserts = false;  // an anchor or a look-ahead is inside
  bool begins = false;   // a ^ is inside
  bool consumes = true;  // may match more than the empty text
};

using AstPtr = std::unique_ptr<Ast>;

const CharSet& dot() {
  static const CharSet set = CharSet({{'\n', '\n'}, {'\r', '\r'}, {0x2028, 0x2029}}).complement();
  return set;
}

bool is_digit(uint32_t c) { return c >= '0' && c <= '9'; }
bool is_letter(uint32_t c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }

class Parser {
 public:
  explicit Parser(std::string_view text) : rest_(text) {}

  Result<AstPtr> whole() {
    if (rest_.size() > kMaxPattern) return Error{"the pattern is longer than 64 KiB"};
    for (std::string_view check = rest_; !check.empty();)
      if (next_char(check) > kMaxChar) return Error{"the pattern is not valid UTF-8"};
    AstPtr out = choice(0);
    if (out && !rest_.empty()) fail("an unmatched )");
    if (!error_.empty()) return Error{"the pattern has " + error_};
    return out;
  }

 private:
  std::nullptr_t fail(std::string what) {
    if (error_.empty()) error_ = std::move(what);
    return nullptr;
  }
  bool take(std::string_view what) {
    if (!rest_.starts_with(what)) return false;
    rest_.remove_prefix(what.size());
    return true;
  }

  AstPtr choice(int depth) {
    if (depth > kMaxNesting) return fail("groups nested deeper than 128");
    auto out = std::make_unique<Ast>();
    out->part = Part::choice;
    out->consumes = false;
    do {
      AstPtr item = sequence(depth);
      if (!item) return nullptr;
      out->asserts |= item->asserts;
      out->begins |= item->begins;
      out->consumes |= item->consumes;
      out->items.push_back(std::move(item));
    } while (take("|"));
    return out->items.size() == 1 ? std::move(out->items[0]) : std::move(out);
  }

  AstPtr sequence(int depth) {
    auto out = std::make_unique<Ast>();
    out->part = Part::sequence;
    out->consumes = false;
    while (!rest_.empty() && rest_[0] != '|' && rest_[0] != ')') {
      AstPtr item = term(depth);
      if (!item) return nullptr;
      out->asserts |= item->asserts;
      out->begins |= item->begins;
      out->consumes |= item->consumes;
      out->items.push_back(std::move(item));
    }
    return out;
  }

  AstPtr assertion(Part part) {
    auto out = std::make_unique<Ast>();
    out->part = part;
    out->asserts = true;
    out->begins = part == Part::begin;
    out->consumes = false;
    return out;
  }

  AstPtr of_set(CharSet set) {
    auto out = std::make_unique<Ast>();
    out->part = Part::set;
    out->set = std::move(set);
    return out;
  }

  AstPtr term(int depth) {
    if (take("^")) return assertion(Part::begin);
    if (take("$")) return assertion(Part::end);
    if (take("(?=")) return look(Part::ahead, depth);
    if (take("(?!")) return look(Part::not_ahead, depth);
    if (rest_.starts_with("(?<=") || rest_.starts_with("(?<!")) return fail("a look-behind, which can't be enforced");
    AstPtr item;
    if (take("(")) {
      if (take("?") && !take(":")) {
        const size_t close = rest_.find('>');
        if (!take("<") || close == std::string_view::npos)
          return fail("an unknown kind of group (?" + std::string(rest_.substr(0, 1)));
        rest_.remove_prefix(close);
      }
      item = choice(depth + 1);
      if (!item) return nullptr;
      if (!take(")")) return fail("an unmatched (");
    } else {
      item = atom();
    }
    return item ? quantified(std::move(item)) : nullptr;
  }

  AstPtr look(Part part, int depth) {
    AstPtr inner = choice(depth + 1);
    if (!inner) return nullptr;
    if (!take(")")) return fail("an unmatched (");
    AstPtr out = assertion(part);
    out->begins = inner->begins;
    out->items.push_back(std::move(inner));
    return out;
  }

  AstPtr atom() {
    if (take(".")) return of_set(dot());
    if (take("[")) {
      auto set = bracket();
      return set ? of_set(std::move(*set)) : nullptr;
    }
    if (take("\\")) {
      auto set = escape(false);
      return set ? of_set(std::move(*set)) : nullptr;
    }
    if (rest_[0] == '*' || rest_[0] == '+' || rest_[0] == '?')
      return fail("nothing to repeat before " + std::string(rest_.substr(0, 1)));
    const uint32_t c = next_char(rest_);
    return of_set(CharSet({{c, c}}));
  }

  // {n}, {n,} or {n,m}; anything else is the characters themselves.
  bool braces(uint32_t& min, uint32_t& max) {
    size_t i = 1;
    auto number = [&](uint32_t& out) {
      const size_t from = i;
      uint64_t value = 0;
      for (; i < rest_.size() && is_digit(uint8_t(rest_[i])); ++i)
        value = std::min<uint64_t>(value * 10 + uint64_t(rest_[i] - '0'), kMaxCount + 1);
      out = uint32_t(value);
      return i > from;
    };
    if (!number(min)) return false;
    max = min;
    if (i < rest_.size() && rest_[i] == ',') {
      ++i;
      if (!number(max)) max = RegexPool::kUnbounded;
    }
    if (i >= rest_.size() || rest_[i] != '}') return false;
    rest_.remove_prefix(i + 1);
    return true;
  }

  AstPtr quantified(AstPtr item) {
    uint32_t min = 0, max = RegexPool::kUnbounded;
    if (take("*")) {
    } else if (take("+")) {
      min = 1;
    } else if (take("?")) {
      max = 1;
    } else if (!rest_.starts_with("{") || !braces(min, max)) {
      return item;
    }
    if (min > max) return fail("a repetition whose minimum is above its maximum");
    if (min > kMaxCount || (max > kMaxCount && max != RegexPool::kUnbounded))
      return fail("a repetition count above 100,000,000");
    take("?");  // how eagerly it matches doesn't change what it matches
    if (!rest_.empty() && (rest_[0] == '*' || rest_[0] == '+' || rest_[0] == '?')) return fail("two quantifiers in a row");
    auto out = std::make_unique<Ast>();
    out->part = Part::repeat;
    out->min = min;
    out->max = max;
    out->asserts = item->asserts;
    out->begins = item->begins;
    out->consumes = item->consumes;
    out->items.push_back(std::move(item));
    return out;
  }

  std::optional<uint32_t> hex(size_t digits) {
    uint32_t value = 0;
    if (rest_.size() < digits) return std::nullopt;
    for (size_t i = 0; i < digits; ++i) {
      const char c = rest_[i];
      const int d = c >= '0' && c <= '9'   ? c - '0'
                    : c >= 'a' && c <= 'f' ? c - 'a' + 10
                    : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                           : -1;
      if (d < 0) return std::nullopt;
      value = value * 16 + uint32_t(d);
    }
    rest_.remove_prefix(digits);
    return value;
  }

  std::optional<uint32_t> unicode_escape() {
    if (rest_.starts_with("{")) {
      const size_t close = rest_.find('}');
      if (close == std::string_view::npos || close < 2 || close > 8) return std::nullopt;
      rest_.remove_prefix(1);
      auto value = hex(close - 1);
      if (!value || *value > kMaxChar) return std::nullopt;
      rest_.remove_prefix(1);
      return value;
    }
    auto value = hex(4);
    if (value && *value >= 0xD800 && *value < 0xDC00 && take("\\u")) {
      auto low = hex(4);
      if (!low || *low < 0xDC00 || *low > 0xDFFF) return std::nullopt;
      return 0x10000 + ((*value - 0xD800) << 10) + (*low - 0xDC00);
    }
    return value;
  }

  // What follows a backslash, which is taken already.
  std::optional<CharSet> escape(bool in_class) {
    if (rest_.empty()) return fail("a \\ at its end"), std::nullopt;
    const uint32_t c = next_char(rest_);
    auto one = [](uint32_t x) { return CharSet({{x, x}}); };
    switch (c) {
      case 'd': return CharSet::digits();
      case 'D': return CharSet::digits().complement();
      case 'w': return CharSet::word();
      case 'W': return CharSet::word().complement();
      case 's': return CharSet::space();
      case 'S': return CharSet::space().complement();
      case 't': return one('\t');
      case 'n': return one('\n');
      case 'v': return one('\v');
      case 'f': return one('\f');
      case 'r': return one('\r');
      case 'x':
        if (auto value = hex(2)) return one(*value);
        return fail("a \\x without two hexadecimal digits"), std::nullopt;
      case 'u':
        if (auto value = unicode_escape()) return one(*value);
        return fail("a \\u without a character's number"), std::nullopt;
      case 'c':
        if (!rest_.empty() && is_letter(uint8_t(rest_[0]))) {
          const uint32_t control = uint8_t(rest_[0]) & 31;
          rest_.remove_prefix(1);
          return one(control);
        }
        return fail("a \\c without a letter"), std::nullopt;
      case 'p':
      case 'P': {
        const size_t close = rest_.find('}');
        CharSet set;
        if (!rest_.starts_with("{") || close == std::string_view::npos ||
            !CharSet::property(rest_.substr(1, close - 1), &set))
          return fail("an unknown character property (general categories are known)"), std::nullopt;
        rest_.remove_prefix(close + 1);
        return c == 'p' ? set : set.complement();
      }
      case 'b':
        if (in_class) return one('\b');
        [[fallthrough]];
      case 'B':
        if (!in_class) return fail("a word boundary, which can't be enforced"), std::nullopt;
    }
    if (c == '0' && (rest_.empty() || !is_digit(uint8_t(rest_[0])))) return one(0);
    if (is_digit(c)) return fail("a back reference, which can't be enforced"), std::nullopt;
    if (is_letter(c)) return fail(std::string("an unknown escape \\") + char(c)), std::nullopt;
    return one(c);
  }

  // After the [.
  std::optional<CharSet> bracket() {
    const bool negated = take("^");
    std::vector<CharRange> ranges;
    auto item = [&](bool& single) -> std::optional<CharSet> {
      if (take("\\")) {
        auto set = escape(true);
        single = set && set->ranges().size() == 1 && set->ranges()[0].first == set->ranges()[0].last;
        return set;
      }
      single = true;
      const uint32_t c = next_char(rest_);
      return CharSet({{c, c}});
    };
    while (!take("]")) {
      if (rest_.empty()) return fail("a [ without ]"), std::nullopt;
      bool single = false, single_end = false;
      auto from = item(single);
      if (!from) return std::nullopt;
      if (single && rest_.size() > 1 && rest_[0] == '-' && rest_[1] != ']') {
        rest_.remove_prefix(1);
        auto to = item(single_end);
        if (!to) return std::nullopt;
        if (single_end) {
          if (from->ranges()[0].first > to->ranges()[0].first)
            return fail("a character range that runs backwards"), std::nullopt;
          ranges.push_back({from->ranges()[0].first, to->ranges()[0].first});
          continue;
        }
        ranges.push_back({'-', '-'});
        ranges.insert(ranges.end(), to->ranges().begin(), to->ranges().end());
      }
      ranges.insert(ranges.end(), from->ranges().begin(), from->ranges().end());
    }
    CharSet set(std::move(ranges));
    return negated ? set.complement() : set;
  }

  std::string_view rest_;
  std::string error_{};
};

// Expressions for a tree, built from the end to the front so that an assertion can see all that follows it.
class Builder {
 public:
  explicit Builder(RegexPool& pool) : pool_(pool) {}

  // `ast` followed by `then`; at_start: nothing has been read yet.
  RegexId build(const Ast& ast, RegexId then, bool at_start) {
    if (!ast.asserts) return pool_.concat(plain(ast), then);
    if (++work_ > 100'000) {
      error = "too many assertions";
      return RegexPool::kNothing;
    }
    switch (ast.part) {
      case Part::begin: return at_start ? then : RegexPool::kNothing;
      case Part::end: return pool_.both({then, RegexPool::kEmpty});
      case Part::ahead: return pool_.both({then, build(*ast.items[0], RegexPool::kAll, at_start)});
      case Part::not_ahead: return pool_.both({then, pool_.negate(build(*ast.items[0], RegexPool::kAll, at_start))});
      case Part::choice: {
        std::vector<RegexId> options;
        for (const AstPtr& item : ast.items) options.push_back(build(*item, then, at_start));
        return pool_.either(std::move(options));
      }
      case Part::sequence: return sequence(ast, then, at_start);
      case Part::repeat:
        if (ast.max <= 1) {
          const RegexId one = build(*ast.items[0], then, at_start);
          return ast.max == 0 ? then : ast.min == 1 ? one : pool_.either({then, one});
        }
        error = "an anchor or look-ahead inside a repetition, which can't be enforced";
        return RegexPool::kNothing;
      default: return RegexPool::kNothing;
    }
  }

  std::string error{};

 private:
  RegexId sequence(const Ast& ast, RegexId then, bool at_start) {
    std::vector<bool> starts;
    bool start = at_start, unsure = false;
    for (const AstPtr& item : ast.items) {
      if (unsure && item->begins) error = "a ^ after an optional part, which can't be enforced";
      starts.push_back(start);
      if (start && item->consumes) {
        unsure = item->asserts ? !always_consumes(*item) : pool_.nullable(plain(*item));
        start = false;
      }
    }
    for (size_t i = ast.items.size(); i-- > 0;) then = build(*ast.items[i], then, starts[i]);
    return then;
  }

  static bool always_consumes(const Ast& ast) {
    if (ast.part == Part::set) return true;
    if (ast.part == Part::repeat) return ast.min > 0 && always_consumes(*ast.items[0]);
    if (ast.part == Part::sequence) {
      for (const AstPtr& item : ast.items)
        if (always_consumes(*item)) return true;
      return false;
    }
    if (ast.part != Part::choice) return false;
    for (const AstPtr& item : ast.items)
      if (!always_consumes(*item)) return false;
    return true;
  }

  RegexId plain(const Ast& ast) {
    switch (ast.part) {
      case Part::set: return pool_.chars(ast.set);
      case Part::sequence: {
        RegexId out = RegexPool::kEmpty;
        for (size_t i = ast.items.size(); i-- > 0;) out = pool_.concat(plain(*ast.items[i]), out);
        return out;
      }
      case Part::choice: {
        std::vector<RegexId> options;
        for (const AstPtr& item : ast.items) options.push_back(plain(*item));
        return pool_.either(std::move(options));
      }
      case Part::repeat: return pool_.repeat(plain(*ast.items[0]), ast.min, ast.max);
      default: return RegexPool::kEmpty;
    }
  }

  RegexPool& pool_;
  int work_ = 0;
};

}  // namespace

Result<RegexId> parse_regex(RegexPool& pool, std::string_view pattern, Match match) {
  Parser parser(pattern);
  Result<AstPtr> ast = parser.whole();
  if (!ast) return ast.error();
  Builder builder(pool);
  RegexId out;
  if (match == Match::whole) {
    out = builder.build(**ast, RegexPool::kEmpty, true);
  } else {
    out = builder.build(**ast, RegexPool::kAll, !(*ast)->begins ? false : true);
    if ((*ast)->begins) {
      const RegexId later = builder.build(**ast, RegexPool::kAll, false);
      out = pool.either({out, pool.concat(pool.repeat(RegexPool::kAnyChar, 1, RegexPool::kUnbounded), later)});
    } else {
      out = pool.concat(RegexPool::kAll, out);
    }
  }
  if (!builder.error.empty()) return Error{"the pattern has " + builder.error};
  if (pool.exhausted()) return Error{"the pattern is too complex"};
  return out;
}

}  // namespace unisono::grammar

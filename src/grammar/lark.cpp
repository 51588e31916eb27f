// The common subset of Lark's notation: rules, terminals with literals and patterns, repetitions, %ignore, and %import from
// `common`. Terminals aren't cut greedily: the text is taken if any way to cut it fits.
#include <algorithm>
#include <array>

#include "grammar/ebnf.h"
#include "grammar/gbnf.h"
#include "grammar/regex_parser.h"

namespace unisono::grammar {

namespace {

constexpr int kMaxNesting = 100;
constexpr size_t kMaxText = 1 << 20;

struct Common {
  std::string_view name, pattern;
};
constexpr std::array kCommon = std::to_array<Common>({
    {"DIGIT", "[0-9]"},
    {"HEXDIGIT", "[0-9A-Fa-f]"},
    {"INT", "[0-9]+"},
    {"SIGNED_INT", "[+-]?[0-9]+"},
    {"DECIMAL", "[0-9]+\\.[0-9]*|\\.[0-9]+"},
    {"FLOAT", "[0-9]+[eE][+-]?[0-9]+|(?:[0-9]+\\.[0-9]*|\\.[0-9]+)(?:[eE][+-]?[0-9]+)?"},
    {"SIGNED_FLOAT", "[+-]?(?:[0-9]+[eE][+-]?[0-9]+|(?:[0-9]+\\.[0-9]*|\\.[0-9]+)(?:[eE][+-]?[0-9]+)?)"},
    {"NUMBER", "[0-9]+|[0-9]+[eE][+-]?[0-9]+|(?:[0-9]+\\.[0-9]*|\\.[0-9]+)(?:[eE][+-]?[0-9]+)?"},
    {"SIGNED_NUMBER", "[+-]?(?:[0-9]+|[0-9]+[eE][+-]?[0-9]+|(?:[0-9]+\\.[0-9]*|\\.[0-9]+)(?:[eE][+-]?[0-9]+)?)"},
    {"ESCAPED_STRING", "\"(?:[^\"\\\\\\n]|\\\\[^\\n])*\""},
    {"LCASE_LETTER", "[a-z]"},
    {"UCASE_LETTER", "[A-Z]"},
    {"LETTER", "[A-Za-z]"},
    {"WORD", "[A-Za-z]+"},
    {"CNAME", "[A-Za-z_][A-Za-z0-9_]*"},
    {"WS_INLINE", "[ \\t]+"},
    {"WS", "[ \\t\\f\\r\\n]+"},
    {"CR", "\\r"},
    {"LF", "\\n"},
    {"NEWLINE", "(?:\\r?\\n)+"},
    {"SH_COMMENT", "#[^\\n]*"},
    {"CPP_COMMENT", "//[^\\n]*"},
});

class Reader {
 public:
  Reader(std::string_view text, Core& core, Ebnf& out) : text_(text), core_(core), out_(out) {}

  std::string run() {
    if (text_.size() > kMaxText) return "the grammar is longer than 1 MiB";
    for (std::string_view rest = text_; !rest.empty();)
      if (next_char(rest) > kMaxChar) return "the grammar is not valid UTF-8";
    space(true);
    while (at_ < text_.size() && error_.empty()) statement();
    return error_;
  }

  // The terminals that %ignore named, once all are known.
  const std::vector<Expression>& ignored() const { return ignored_; }

 private:
  char peek() const { return at_ < text_.size() ? text_[at_] : '\0'; }
  // An escape at the end of the text leaves at_ behind it.
  std::string_view rest() const { return text_.substr(std::min(at_, text_.size())); }
  bool take(std::string_view what) {
    if (!rest().starts_with(what)) return false;
    at_ += what.size();
    return true;
  }
  static bool is_name(char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
  }
  static bool is_terminal(std::string_view name) {
    const size_t i = name.find_first_not_of('_');
    return i != std::string_view::npos && name[i] >= 'A' && name[i] <= 'Z';
  }
  void fail(const std::string& what) {
    if (!error_.empty()) return;
    size_t line = 1;
    for (size_t i = 0; i < at_ && i < text_.size(); ++i) line += text_[i] == '\n';
    error_ = "line " + std::to_string(line) + ": " + what;
  }

  void space(bool lines) {
    while (at_ < text_.size()) {
      const char c = text_[at_];
      if (c == '#' || rest().starts_with("//"))
        while (at_ < text_.size() && text_[at_] != '\n') ++at_;
      else if (c == ' ' || c == '\t' || (lines && (c == '\n' || c == '\r')))
        ++at_;
      else
        return;
    }
  }
  // A line that goes on with |.
  bool another_choice() {
    const size_t before = at_;
    space(true);
    if (take("|")) return space(true), true;
    at_ = before;
    space(false);
    return false;
  }

  std::string name() {
    const size_t from = at_;
    while (is_name(peek())) ++at_;
    if (at_ == from) fail("a name was expected");
    return std::string(text_.substr(from, at_ - from));
  }

  void statement() {
    if (take("%ignore")) {
      space(false);
      ignored_.push_back(choice(0));
    } else if (take("%import")) {
      import();
    } else if (peek() == '%') {
      fail("this directive isn't supported: only %ignore and %import common are");
    } else {
      definition();
    }
    space(false);
    if (error_.empty() && at_ < text_.size() && peek() != '\n' && peek() != '\r')
      fail("unexpected `" + std::string(1, peek()) + "`");
    space(true);
  }

  void import() {
    space(false);
    if (!take("common") || is_name(peek())) return fail("only `common` can be imported from");
    auto one = [&](const std::string& what, const std::string& as) {
      for (const Common& c : kCommon) {
        if (c.name != what) continue;
        Result<RegexId> language = parse_regex(core_.pool, c.pattern, Match::whole);
        if (!language || !out_.add(as, Expression::of(*language))) return fail("`" + as + "` is defined twice");
        return out_.mark_terminal(as);
      }
      fail("`common." + what + "` isn't known");
    };
    if (!take(".")) {
      space(false);
      if (!take("(")) return fail("`common.NAME` or `common (NAME, ...)` was expected");
      do {
        space(true);
        const std::string what = name();
        one(what, what);
        space(true);
      } while (error_.empty() && take(","));
      if (!take(")")) fail("`)` was expected");
      return;
    }
    const std::string what = name();
    space(false);
    std::string as = what;
    if (take("->")) {
      space(false);
      as = name();
    }
    one(what, as);
  }

  void definition() {
    while (take("?") || take("!")) {
    }
    const std::string called = name();
    if (!error_.empty()) return;
    if (peek() == '{') return fail("templates aren't supported");
    space(false);
    if (take(".")) {  // a priority says how to cut, not what belongs to it
      if (peek() == '-') ++at_;
      name();
      space(false);
    }
    if (!take(":")) return fail("`:` was expected after `" + called + "`");
    space(true);
    Expression body = choice(0);
    if (!error_.empty()) return;
    if (!out_.add(called, std::move(body))) return fail("`" + called + "` is defined twice");
    if (is_terminal(called)) out_.mark_terminal(called);
  }

  Expression choice(int depth) {
    Expression out;
    out.op = Expression::Op::choice;
    if (depth > kMaxNesting) fail("groups are nested deeper than 100");
    do {
      out.items.push_back(sequence(depth));
      if (take("->")) {  // an alias names a branch of the tree
        space(false);
        name();
      }
    } while (error_.empty() && another_choice());
    return out.items.size() == 1 ? std::move(out.items[0]) : std::move(out);
  }

  Expression sequence(int depth) {
    Expression out;
    while (error_.empty()) {
      space(depth > 0);
      const char c = peek();
      Expression item;
      if (c == '"')
        item = literal();
      else if (c == '/')
        item = pattern();
      else if (take("(")) {
        space(true);
        item = choice(depth + 1);
        space(true);
        if (!take(")")) fail("`)` was expected");
      } else if (take("[")) {
        space(true);
        item = Expression::many(choice(depth + 1), 0, 1);
        space(true);
        if (!take("]")) fail("`]` was expected");
      } else if (is_name(c)) {
        item = Expression::call(name());
        if (peek() == '{') fail("templates aren't supported");
        if (peek() == '.') fail("names with a dot aren't supported");
      } else {
        break;
      }
      out.items.push_back(repeated(std::move(item)));
    }
    return out.items.size() == 1 ? std::move(out.items[0]) : std::move(out);
  }

  bool number(uint32_t& out) {
    uint64_t value = 0;
    const size_t from = at_;
    for (; peek() >= '0' && peek() <= '9'; ++at_)
      value = std::min<uint64_t>(value * 10 + uint64_t(peek() - '0'), 1'000'000);
    out = uint32_t(value);
    return at_ > from;
  }

  Expression repeated(Expression item) {
    if (take("*")) return Expression::many(std::move(item), 0, RegexPool::kUnbounded);
    if (take("+")) return Expression::many(std::move(item), 1, RegexPool::kUnbounded);
    if (take("?")) return Expression::many(std::move(item), 0, 1);
    const size_t before = at_;
    space(false);
    if (!take("~")) {
      at_ = before;
      return item;
    }
    space(false);
    uint32_t min = 0, max = 0;
    if (!number(min)) fail("a count was expected after `~`");
    max = min;
    space(false);
    if (take("..")) {
      space(false);
      if (!number(max)) fail("a count was expected after `..`");
    }
    if (max < min) fail("a repetition's minimum is above its maximum");
    return Expression::many(std::move(item), min, max);
  }

  // What stands between quotes, with Python's escapes resolved.
  std::string quoted_text() {
    take("\"");
    std::string out;
    while (error_.empty() && !take("\"")) {
      if (at_ >= text_.size() || peek() == '\n') {
        fail("a literal without its closing quote");
      } else if (take("\\")) {
        const char c = peek();
        ++at_;
        constexpr std::string_view kNames = "ntrfv\\\"'/", kMeans = "\n\t\r\f\v\\\"'/";
        size_t digits = c == 'x' ? 2 : c == 'u' ? 4 : 0;
        const size_t known = kNames.find(c);
        if (digits == 0 && known == std::string_view::npos)
          fail("an unknown escape in a literal");
        else if (digits == 0)
          out += kMeans[known];
        uint32_t value = 0;
        for (size_t i = 0; i < digits; ++i, ++at_) {
          const char d = peek();
          const int v = d >= '0' && d <= '9'   ? d - '0'
                        : d >= 'a' && d <= 'f' ? d - 'a' + 10
                        : d >= 'A' && d <= 'F' ? d - 'A' + 10
                                               : -1;
          if (v < 0) fail("a hexadecimal digit was expected");
          value = value * 16 + uint32_t(std::max(v, 0));
        }
        if (digits > 0 && value >= 0xD800 && value < 0xE000)
          fail("an escape names no character");
        else if (digits > 0)
          append_utf8(out, value);
      } else {
        out += peek();
        ++at_;
      }
    }
    return out;
  }

  Expression literal() {
    const std::string text = quoted_text();
    if (!error_.empty()) return {};
    if (rest().starts_with("..\"")) {
      at_ += 2;
      const std::string last = quoted_text();
      std::string_view a = text, b = last;
      const uint32_t from = a.empty() ? 1 : next_char(a), to = b.empty() ? 0 : next_char(b);
      if (!a.empty() || !b.empty() || from > to) fail("a range must go from one character to a later one");
      return Expression::of(core_.pool.chars(CharSet({{from, to}})));
    }
    if (!take("i")) return Expression::of(core_.pool.text(text));
    RegexId out = RegexPool::kEmpty;
    std::vector<uint32_t> all;
    for (std::string_view rest = text; !rest.empty();) all.push_back(next_char(rest));
    for (size_t i = all.size(); i-- > 0;) {
      const uint32_t c = all[i];
      if (c >= 128) fail("a literal that ignores case must be ASCII");
      const bool letter = (c | 32) >= 'a' && (c | 32) <= 'z';
      const CharSet set = letter ? CharSet({{c | 32, c | 32}, {c & ~32u, c & ~32u}}) : CharSet({{c, c}});
      out = core_.pool.concat(core_.pool.chars(set), out);
    }
    return Expression::of(out);
  }

  Expression pattern() {
    const size_t from = ++at_;
    bool in_class = false;
    for (; at_ < text_.size() && (text_[at_] != '/' || in_class) && text_[at_] != '\n'; ++at_) {
      if (text_[at_] == '\\')
        ++at_;
      else if (text_[at_] == '[')
        in_class = true;
      else if (text_[at_] == ']')
        in_class = false;
    }
    if (peek() != '/') return fail("a pattern without its closing /"), Expression{};
    const std::string_view text = text_.substr(from, at_ - from);
    ++at_;
    if (is_name(peek())) return fail("flags of patterns aren't supported"), Expression{};
    Result<RegexId> language = parse_regex(core_.pool, text, Match::whole);
    if (!language) return fail(language.error().message), Expression{};
    return Expression::of(*language);
  }

  std::string_view text_;
  size_t at_ = 0;
  Core& core_;
  Ebnf& out_;
  std::vector<Expression> ignored_{};
  std::string error_{};
};

}  // namespace

Result<NodeId> compile_lark(std::string_view text, Core& core) {
  Ebnf rules(core);
  Reader reader(text, core, rules);
  const std::string error = reader.run();
  if (!error.empty()) return Error{"the grammar can't be read: " + error, ""};
  std::vector<RegexId> ignored;
  for (const Expression& e : reader.ignored()) {
    RegexId language = RegexPool::kNothing;
    if (!rules.regular_language(e, &language))
      return Error{"what %ignore names must be a terminal that is defined", "%ignore"};
    ignored.push_back(language);
  }
  for (RegexId language : ignored) rules.ignore(language);
  return rules.finish("start");
}

}  // namespace unisono::grammar

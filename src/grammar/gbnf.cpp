// llama.cpp's notation for grammars: `name ::= alternatives`, with literals, character classes, groups and repetitions.
#include "grammar/gbnf.h"

#include <algorithm>

#include "grammar/ebnf.h"

namespace unisono::grammar {

namespace {

constexpr int kMaxNesting = 100;
constexpr size_t kMaxText = 1 << 20;

class Reader {
 public:
  Reader(std::string_view text, Core& core, Ebnf& out) : text_(text), core_(core), out_(out) {}

  // The sentence; empty: it was read.
  std::string run() {
    if (text_.size() > kMaxText) return "the grammar is longer than 1 MiB";
    for (std::string_view rest = text_; !rest.empty();)
      if (next_char(rest) > kMaxChar) return "the grammar is not valid UTF-8";
    space(true);
    while (at_ < text_.size() && error_.empty()) rule();
    return error_;
  }

 private:
  bool is_name(char c) const {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' || c == '_';
  }
  char peek() const { return at_ < text_.size() ? text_[at_] : '\0'; }
  // An escape at the end of the text leaves at_ behind it.
  std::string_view rest() const { return text_.substr(std::min(at_, text_.size())); }
  bool take(std::string_view what) {
    if (!rest().starts_with(what)) return false;
    at_ += what.size();
    return true;
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
      if (c == '#')
        while (at_ < text_.size() && text_[at_] != '\n') ++at_;
      else if (c == ' ' || c == '\t' || (lines && (c == '\n' || c == '\r')))
        ++at_;
      else
        return;
    }
  }

  std::string name() {
    const size_t from = at_;
    while (is_name(peek())) ++at_;
    if (at_ == from) fail("a rule's name was expected");
    return std::string(text_.substr(from, at_ - from));
  }

  void rule() {
    const std::string called = name();
    space(false);
    if (!take("::=")) return fail("`::=` was expected after `" + called + "`");
    space(true);
    Expression body = choice(0);
    if (!error_.empty()) return;
    if (at_ < text_.size() && peek() != '\n' && peek() != '\r') return fail("unexpected `" + std::string(1, peek()) + "`");
    space(true);
    if (!out_.add(called, std::move(body))) fail("the rule `" + called + "` is defined twice");
  }

  Expression choice(int depth) {
    Expression out;
    out.op = Expression::Op::choice;
    if (depth > kMaxNesting) fail("groups are nested deeper than 100");
    while (error_.empty()) {
      out.items.push_back(sequence(depth));
      if (!take("|")) break;
      space(true);
    }
    return out.items.size() == 1 ? std::move(out.items[0]) : std::move(out);
  }

  Expression sequence(int depth) {
    Expression out;
    while (error_.empty()) {
      const char c = peek();
      Expression item;
      if (c == '"')
        item = literal();
      else if (c == '[')
        item = set();
      else if (take("."))
        item = Expression::of(RegexPool::kAnyChar);
      else if (take("(")) {
        space(true);
        item = choice(depth + 1);
        if (!take(")")) fail("`)` was expected");
      } else if (is_name(c)) {
        item = Expression::call(name());
      } else if (c == '<' || c == '!') {
        fail("references to tokens aren't supported; write the token's text");
      } else {
        break;
      }
      space(depth > 0);
      item = repeated(std::move(item), depth);
      out.items.push_back(std::move(item));
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

  Expression repeated(Expression item, int depth) {
    while (error_.empty()) {
      uint32_t min = 0, max = RegexPool::kUnbounded;
      if (take("*")) {
      } else if (take("+")) {
        min = 1;
      } else if (take("?")) {
        max = 1;
      } else if (take("{")) {
        space(false);
        if (!number(min)) fail("a count was expected after `{`");
        max = min;
        space(false);
        if (take(",")) {
          space(false);
          if (!number(max)) max = RegexPool::kUnbounded;
          space(false);
        }
        if (!take("}")) fail("`}` was expected");
        if (max < min) fail("a repetition's minimum is above its maximum");
      } else {
        return item;
      }
      item = Expression::many(std::move(item), min, max);
      space(depth > 0);
    }
    return item;
  }

  uint32_t escaped() {
    const char c = peek();
    ++at_;
    size_t digits = c == 'x' ? 2 : c == 'u' ? 4 : c == 'U' ? 8 : 0;
    if (digits > 0) {
      uint32_t value = 0;
      for (; digits > 0; --digits, ++at_) {
        const char d = peek();
        const int v = d >= '0' && d <= '9'   ? d - '0'
                      : d >= 'a' && d <= 'f' ? d - 'a' + 10
                      : d >= 'A' && d <= 'F' ? d - 'A' + 10
                                             : -1;
        if (v < 0) return fail("a hexadecimal digit was expected"), 0;
        value = value * 16 + uint32_t(v);
      }
      if (value > kMaxChar || (value >= 0xD800 && value < 0xE000)) fail("an escape names no character");
      return value;
    }
    switch (c) {
      case 'n': return '\n';
      case 't': return '\t';
      case 'r': return '\r';
      case '"':
      case '\\':
      case '[':
      case ']':
      case '-':
      case '^': return uint32_t(c);
      default: return fail("an unknown escape"), 0;
    }
  }

  uint32_t character() {
    if (take("\\")) return escaped();
    std::string_view rest = this->rest();
    const uint32_t c = next_char(rest);
    at_ = text_.size() - rest.size();
    return c;
  }

  Expression literal() {
    take("\"");
    std::string utf8;
    while (error_.empty() && !take("\"")) {
      if (at_ >= text_.size())
        fail("a literal without its closing quote");
      else
        append_utf8(utf8, character());
    }
    return Expression::of(core_.pool.text(utf8));
  }

  Expression set() {
    take("[");
    const bool negated = take("^");
    std::vector<CharRange> ranges;
    while (error_.empty() && !take("]")) {
      if (at_ >= text_.size()) {
        fail("a `[` without `]`");
        break;
      }
      const uint32_t from = character();
      uint32_t to = from;
      if (peek() == '-' && at_ + 1 < text_.size() && text_[at_ + 1] != ']') {
        ++at_;
        to = character();
        if (to < from) fail("a character range that runs backwards");
      }
      ranges.push_back({from, to});
    }
    const CharSet set(std::move(ranges));
    return Expression::of(core_.pool.chars(negated ? set.complement() : set));
  }

  std::string_view text_;
  size_t at_ = 0;
  Core& core_;
  Ebnf& out_;
  std::string error_{};
};

}  // namespace

Result<NodeId> compile_gbnf(std::string_view text, Core& core) {
  Ebnf rules(core);
  const std::string error = Reader(text, core, rules).run();
  if (!error.empty()) return Error{"the grammar can't be read: " + error, ""};
  return rules.finish("root");
}

}  // namespace unisono::grammar

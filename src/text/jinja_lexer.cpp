#include "text/jinja_lexer.h"

#include <algorithm>
#include <array>
#include <charconv>

#include "text/jinja_unicode.h"

namespace unisono::text::jinja {

namespace {

bool is_ascii_digit(char c) { return c >= '0' && c <= '9'; }

int digit_value(char c) {
  if (is_ascii_digit(c)) return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return 99;
}

// "\r\n" and "\r" become "\n"; one newline at the end goes.
std::string normalized(std::string_view source) {
  std::string out;
  out.reserve(source.size());
  for (size_t i = 0; i < source.size(); ++i) {
    if (source[i] == '\r') {
      out.push_back('\n');
      if (i + 1 < source.size() && source[i + 1] == '\n') ++i;
    } else {
      out.push_back(source[i]);
    }
  }
  if (!out.empty() && out.back() == '\n') out.pop_back();
  return out;
}

class Lexer {
 public:
  explicit Lexer(std::string_view source) : owned_(normalized(source)), source_(owned_) {}
  std::vector<Token> run();

 private:
  char at(size_t i) const { return i < source_.size() ? source_[i] : '\0'; }
  bool looking_at(std::string_view text, size_t i) const {
    return source_.substr(std::min(i, source_.size()), text.size()) == text;
  }
  void push(TokenKind kind, std::string text = {}) { tokens_.push_back({kind, line_, std::move(text), {}}); }
  void advance(size_t to);
  size_t skip_space(size_t i) const;
  size_t next_tag() const;

  void data(size_t end, char sign, bool is_variable);
  void comment();
  bool raw(size_t begin, char sign);
  void tag(bool is_variable);
  bool end_of_tag(bool is_variable);
  void token();
  bool number();
  size_t digits(size_t i) const;
  void real(size_t end);
  void integer();
  void string();
  void escape(std::string& out, size_t& i, size_t end) const;
  void punctuation();

  std::string owned_;
  std::string_view source_;
  size_t pos_ = 0;
  int line_ = 1;
  std::vector<Token> tokens_{};
  std::string open_{};  // closing brackets that are due, innermost last
};

void Lexer::advance(size_t to) {
  line_ += static_cast<int>(std::count(source_.begin() + pos_, source_.begin() + to, '\n'));
  pos_ = to;
}

size_t Lexer::skip_space(size_t i) const { return source_.size() - strip_left(source_.substr(i)).size(); }

size_t Lexer::next_tag() const {
  for (size_t i = source_.find('{', pos_); i != std::string_view::npos; i = source_.find('{', i + 1))
    if (at(i + 1) == '{' || at(i + 1) == '%' || at(i + 1) == '#') return i;
  return source_.size();
}

std::vector<Token> Lexer::run() {
  while (pos_ < source_.size()) {
    size_t begin = next_tag();
    char kind = at(begin + 1), sign = at(begin + 2);
    if (sign != '-' && sign != '+') sign = '\0';
    data(begin, sign, kind == '{' || begin == source_.size());
    if (begin == source_.size()) break;
    size_t inside = begin + 2 + (sign != '\0');
    if (kind == '%' && raw(begin, sign)) continue;
    if (kind == '#') {
      advance(inside);
      comment();
      continue;
    }
    push(kind == '{' ? TokenKind::variable_begin : TokenKind::block_begin);
    advance(inside);
    tag(kind == '{');
  }
  push(TokenKind::end);
  return std::move(tokens_);
}

// The text before a tag at `end`, with the white space at its end that the tag takes away.
void Lexer::data(size_t end, char sign, bool is_variable) {
  std::string_view text = source_.substr(pos_, end - pos_);
  if (sign == '-') {
    text = strip_right(text);
  } else if (sign != '+' && !is_variable) {
    size_t line = text.rfind('\n') + 1;  // 0 when there is none
    bool begins_line = line > 0 || pos_ == 0 || source_[pos_ - 1] == '\n';
    if (begins_line && strip_left(text.substr(line)).empty()) text = text.substr(0, line);
  }
  if (!text.empty()) push(TokenKind::data, std::string(text));
  advance(end);
}

void Lexer::comment() {
  if (pos_ == source_.size()) return;  // as Jinja has it
  size_t end = source_.find("#}", pos_);
  if (end == std::string_view::npos) fail_at(line_, "a comment doesn't end.");
  char sign = end > pos_ ? source_[end - 1] : '\0';
  size_t after = end + 2;
  if (sign == '-')
    after = skip_space(after);
  else if (sign != '+' && at(after) == '\n')
    ++after;
  advance(after);
}

// Takes a whole raw block, if one begins here.
bool Lexer::raw(size_t begin, char sign) {
  size_t i = skip_space(begin + 2 + (sign != '\0'));
  if (!looking_at("raw", i)) return false;
  i = skip_space(i + 3);
  bool strips = looking_at("-%}", i);
  if (!strips && !looking_at("%}", i)) return false;
  size_t inside = strips ? skip_space(i + 3) : i + 2;
  advance(inside);
  for (size_t end = source_.find("{%", inside); end != std::string_view::npos; end = source_.find("{%", end + 1)) {
    char end_sign = at(end + 2);
    if (end_sign != '-' && end_sign != '+') end_sign = '\0';
    size_t j = skip_space(end + 2 + (end_sign != '\0'));
    if (!looking_at("endraw", j)) continue;
    j = skip_space(j + 6);
    bool ends = looking_at("%}", j) || looking_at("-%}", j) || looking_at("+%}", j);
    if (!ends) continue;
    data(end, end_sign, false);
    advance(j);
    return end_of_tag(false);
  }
  fail_at(line_, "a raw block doesn't end.");
}

void Lexer::tag(bool is_variable) {
  open_.clear();
  while (pos_ < source_.size()) {
    int line = line_;
    if (open_.empty() && end_of_tag(is_variable)) {
      push(is_variable ? TokenKind::variable_end : TokenKind::block_end);
      tokens_.back().line = line;
      return;
    }
    size_t next = skip_space(pos_);
    if (next > pos_)
      advance(next);
    else
      token();
  }
}

// Takes the end of a tag, if it is here, with the white space it takes away.
bool Lexer::end_of_tag(bool is_variable) {
  std::string_view mark = is_variable ? "}}" : "%}";
  char sign = at(pos_);
  bool strips = sign == '-', keeps = sign == '+' && !is_variable;
  size_t i = pos_ + (strips || keeps);
  if (!looking_at(mark, i)) return false;
  i += 2;
  if (strips)
    i = skip_space(i);
  else if (!keeps && !is_variable && at(i) == '\n')
    ++i;
  advance(i);
  return true;
}

void Lexer::token() {
  char c = source_[pos_];
  if (is_ascii_digit(c)) {
    if (!number()) integer();
    return;
  }
  if (c == '\'' || c == '"') return string();
  size_t end = pos_;
  while (end < source_.size()) {
    CodePoint p = code_point_at(source_, end);
    if (!is_word(p.value)) break;
    end += p.length;
  }
  if (end == pos_) return punctuation();
  push(TokenKind::name, std::string(source_.substr(pos_, end - pos_)));
  advance(end);
}

// Where a run of digits with single underscores in it ends; i when there is none.
size_t Lexer::digits(size_t i) const {
  if (!is_ascii_digit(at(i))) return i;
  while (is_ascii_digit(at(i)) || (at(i) == '_' && is_ascii_digit(at(i + 1)))) ++i;
  return i;
}

bool Lexer::number() {
  if (pos_ > 0 && source_[pos_ - 1] == '.') return false;
  size_t whole = digits(pos_), end = whole;
  if (at(end) == '.' && digits(end + 1) > end + 1) end = digits(end + 1);
  if (at(end) == 'e' || at(end) == 'E') {
    size_t exponent = end + 1 + (at(end + 1) == '+' || at(end + 1) == '-');
    if (digits(exponent) > exponent) end = digits(exponent);
  }
  if (end == whole) return false;
  real(end);
  return true;
}

void Lexer::real(size_t end) {
  std::string text(source_.substr(pos_, end - pos_));
  std::erase(text, '_');
  double value = 0;
  std::from_chars_result result = std::from_chars(text.data(), text.data() + text.size(), value);
  if (result.ec == std::errc::result_out_of_range) fail_at(line_, "the number " + text + " is out of range.");
  push(TokenKind::real, text);
  tokens_.back().number = value;
  advance(end);
}

void Lexer::integer() {
  int base = 10;
  char mark = static_cast<char>(at(pos_ + 1) | 0x20);
  size_t i = pos_, end = pos_;
  if (source_[pos_] == '0') {
    int wanted = mark == 'x' ? 16 : mark == 'o' ? 8 : mark == 'b' ? 2 : 0;
    size_t first = pos_ + 2 + (at(pos_ + 2) == '_');
    if (wanted != 0 && digit_value(at(first)) < wanted) {
      base = wanted;
      i = first;
    }
  }
  // A decimal that begins with 0 is zeros only; what follows is a token of its own.
  bool zeros = base == 10 && source_[pos_] == '0';
  Int value = 0;
  for (end = i;; ++end) {
    if (at(end) == '_' && digit_value(at(end + 1)) < (zeros ? 1 : base)) continue;
    int digit = digit_value(at(end));
    if (digit >= (zeros ? 1 : base)) break;
    if (value > (Int(1) << 100)) fail_at(line_, "a number is too large.");
    value = value * base + digit;
  }
  push(TokenKind::integer, std::string(source_.substr(pos_, end - pos_)));
  tokens_.back().number = value;
  advance(end);
}

void Lexer::string() {
  char quote = source_[pos_];
  size_t end = pos_ + 1;
  while (end < source_.size() && source_[end] != quote) end += source_[end] == '\\' ? 2 : 1;
  if (end >= source_.size()) fail_at(line_, "a string doesn't end.");
  std::string value;
  for (size_t i = pos_ + 1; i < end;) {
    if (source_[i] != '\\')
      value.push_back(source_[i++]);
    else
      escape(value, i, end);
  }
  push(TokenKind::string, std::move(value));
  advance(end + 1);
}

// Python's escapes; i is at the backslash, and is moved behind the escape. What means nothing stays as it is.
void Lexer::escape(std::string& out, size_t& i, size_t end) const {
  char c = source_[i + 1];
  constexpr std::string_view kNames = "abfnrtv\\'\"", kValues = "\a\b\f\n\r\t\v\\'\"";
  if (size_t name = kNames.find(c); name != std::string_view::npos) {
    out.push_back(kValues[name]);
    i += 2;
    return;
  }
  if (c == '\n') {
    i += 2;
    return;
  }
  bool octal = c >= '0' && c <= '7';
  size_t wanted = octal ? 3 : c == 'x' ? 2 : c == 'u' ? 4 : c == 'U' ? 8 : 0;
  if (c == 'N') fail_at(line_, "the escape '\\N' is not supported.");
  if (wanted == 0) {
    out.push_back('\\');
    ++i;
    return;
  }
  size_t first = i + (octal ? 1 : 2), last = first;
  char32_t value = 0;
  while (last < end && last - first < wanted && digit_value(source_[last]) < (octal ? 8 : 16))
    value = value * (octal ? 8 : 16) + static_cast<char32_t>(digit_value(source_[last++]));
  if (!octal && last - first < wanted) fail_at(line_, "an escape in a string is cut short.");
  if (value > 0x10FFFF || (value >= 0xD800 && value < 0xE000)) fail_at(line_, "an escape in a string is no character.");
  append_utf8(out, value);
  i = last;
}

void Lexer::punctuation() {
  constexpr std::array<std::string_view, 6> kDouble = {"//", "**", "==", "!=", ">=", "<="};
  for (std::string_view sign : kDouble)
    if (looking_at(sign, pos_)) {
      push(TokenKind::punctuation, std::string(sign));
      return advance(pos_ + 2);
    }
  char c = source_[pos_];
  if (std::string_view("+-/*%~[](){}><=.:|,;").find(c) == std::string_view::npos)
    fail_at(line_,
            "unexpected character '" + std::string(source_.substr(pos_, code_point_at(source_, pos_).length)) + "'.");
  if (c == '(' || c == '[' || c == '{') {
    open_.push_back(c == '(' ? ')' : c == '[' ? ']' : '}');
  } else if (c == ')' || c == ']' || c == '}') {
    if (open_.empty() || open_.back() != c) fail_at(line_, std::string("unexpected '") + c + "'.");
    open_.pop_back();
  }
  push(TokenKind::punctuation, std::string(1, c));
  advance(pos_ + 1);
}

}  // namespace

void fail_at(int line, const std::string& what) { fail("Line " + std::to_string(line) + ": " + what); }

std::vector<Token> tokenize(std::string_view source) { return Lexer(source).run(); }

}  // namespace unisono::text::jinja

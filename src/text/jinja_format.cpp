#include "text/jinja_format.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <string>

#include "text/jinja_eval.h"
#include "text/jinja_numbers.h"
#include "text/jinja_operators.h"
#include "text/jinja_print.h"
#include "text/jinja_unicode.h"

namespace unisono::text::jinja {

namespace {

// How one value is laid out; both ways of formatting end in this.
struct Layout {
  Text fill{};        // one character; empty: a space
  char align = '\0';  // < > ^ or = (padding after the sign); '\0': as the type has it
  char sign = '-';    // - + or space
  bool alternate = false;
  char group = '\0';  // , or _
  size_t width = 0;
  std::optional<size_t> precision{};
  char type = '\0';
};

void pad(TextBuilder& out, const Layout& layout, const Text& text, char default_align) {
  size_t length = count_code_points(text.view());
  size_t missing = layout.width > length ? layout.width - length : 0;
  char align = layout.align != '\0' ? layout.align : default_align;
  size_t left = align == '<' ? 0 : align == '^' ? missing / 2 : missing;
  auto fill = [&](size_t n) {
    for (size_t i = 0; i < n; ++i) {
      if (layout.fill.empty())
        out.append(" ");
      else
        out.append(layout.fill);
    }
  };
  fill(left);
  out.append(text);
  fill(missing - left);
}

void put_text(TextBuilder& out, const Layout& layout, const Text& text, char default_align) {
  size_t end = layout.precision ? offset_of(text.view(), *layout.precision) : text.size();
  pad(out, layout, text.slice(0, end), default_align);
}

// digits: of the number without its sign. The prefix (0x) stands before the padding that follows the sign.
void put_number(TextBuilder& out, Budget& budget, const Layout& layout, bool negative, const std::string& prefix,
                std::string digits) {
  if (layout.group != '\0') {
    size_t whole = digits.find_first_not_of("0123456789abcdefABCDEF");
    if (whole == std::string::npos) whole = digits.size();
    size_t step = layout.type == 'x' || layout.type == 'X' || layout.type == 'b' || layout.type == 'o' ? 4 : 3;
    for (size_t i = whole; i > step; i -= step) digits.insert(i - step, 1, layout.group);
  }
  std::string head = negative ? "-" : layout.sign == '-' ? "" : std::string(1, layout.sign);
  head += prefix;
  TextBuilder body(budget);
  if (layout.align == '=') {
    body.append(head);
    Layout inner = layout;
    inner.align = '>';
    inner.width = layout.width > head.size() ? layout.width - head.size() : 0;
    TextBuilder text(budget);
    text.append(digits);
    pad(out, {}, body.finish(), '<');
    pad(out, inner, text.finish(), '>');
    return;
  }
  body.append(head + digits);
  pad(out, layout, body.finish(), '>');
}

void put_integer(TextBuilder& out, Budget& budget, const Layout& layout, Int value) {
  bool negative = value < 0;
  auto magnitude = negative ? -static_cast<unsigned __int128>(value) : static_cast<unsigned __int128>(value);
  std::string digits, prefix;
  switch (layout.type) {
    case 'x': digits = fmt::format("{:x}", magnitude), prefix = "0x"; break;
    case 'X': digits = fmt::format("{:X}", magnitude), prefix = "0X"; break;
    case 'o': digits = fmt::format("{:o}", magnitude), prefix = "0o"; break;
    case 'b': digits = fmt::format("{:b}", magnitude), prefix = "0b"; break;
    default: digits = fmt::format("{}", magnitude); break;
  }
  put_number(out, budget, layout, negative, layout.alternate ? prefix : "", std::move(digits));
}

void put_float(TextBuilder& out, Budget& budget, const Layout& layout, double value) {
  bool percent = layout.type == '%';
  if (percent) value *= 100;
  size_t precision = layout.precision.value_or(6);
  if (precision > 1000) fail("a precision beyond 1000 digits is not supported");
  std::string format =
      std::string(layout.alternate ? "%#." : "%.") + std::to_string(precision) + (percent ? 'f' : layout.type);
  std::string digits(static_cast<size_t>(std::snprintf(nullptr, 0, format.c_str(), std::fabs(value))), '\0');
  std::snprintf(digits.data(), digits.size() + 1, format.c_str(), std::fabs(value));
  if (percent) digits += "%";
  put_number(out, budget, layout, std::signbit(value) && !std::isnan(value), "", std::move(digits));
}

bool is_float_type(char type) { return std::string_view("eEfFgG%").find(type) != std::string_view::npos; }
bool is_int_type(char type) { return std::string_view("dxXob").find(type) != std::string_view::npos; }

size_t limited(size_t width) {
  if (width > Budget::kMaxText) fail("a width beyond 16 MiB is not supported");
  return width;
}

size_t take_number(std::string_view text, size_t& at) {
  size_t number = 0;
  for (; at < text.size() && text[at] >= '0' && text[at] <= '9'; ++at)
    number = limited(number * 10 + static_cast<size_t>(text[at] - '0'));
  return number;
}

// ---- "%s" % values

class PercentFormatter {
 public:
  PercentFormatter(Machine& machine, const Text& format, const Value& values)
      : machine_(machine), format_(format), view_(format.view()), values_(values), out_(machine.budget()) {}
  Text run();

 private:
  Value next();
  Value next_of_name();
  size_t number_or_star();
  void conversion();
  void put(Layout layout, char type, const Value& value);

  Machine& machine_;
  const Text& format_;
  std::string_view view_;
  const Value& values_;
  TextBuilder out_;
  size_t at_ = 0, used_ = 0;
};

Value PercentFormatter::next() {
  const Sequence* tuple = values_.sequence();
  bool is_tuple = tuple != nullptr && tuple->is_tuple();
  if (used_ >= (is_tuple ? tuple->items.size() : 1)) fail("not enough arguments for format string");
  ++used_;
  return is_tuple ? tuple->items[used_ - 1] : values_;
}

Value PercentFormatter::next_of_name() {
  size_t end = view_.find(')', at_);
  if (values_.dict() == nullptr) fail("format requires a mapping");
  if (end == std::string_view::npos) fail("incomplete format key");
  std::string_view name = view_.substr(at_ + 1, end - at_ - 1);
  at_ = end + 1;
  const Value* value = values_.dict()->find(name);
  if (value == nullptr) fail("the format asks for '" + std::string(name) + "', which is not there");
  return *value;
}

size_t PercentFormatter::number_or_star() {
  if (at_ >= view_.size() || view_[at_] != '*') return take_number(view_, at_);
  ++at_;
  Value value = next();
  std::optional<Int> number = value.integer();
  if (!number || *number < 0) fail("* wants an int that is not negative");
  return limited(static_cast<size_t>(std::min<Int>(*number, Int(1) << 40)));
}

void PercentFormatter::conversion() {
  Layout layout;
  std::optional<Value> value;
  if (at_ < view_.size() && view_[at_] == '(') value = next_of_name();
  bool left = false, zero = false;
  for (; at_ < view_.size(); ++at_) {
    char flag = view_[at_];
    if (flag == '-')
      left = true;
    else if (flag == '0')
      zero = true;
    else if (flag == '+' || (flag == ' ' && layout.sign != '+'))
      layout.sign = flag;
    else if (flag == '#')
      layout.alternate = true;
    else if (flag != ' ')
      break;
  }
  layout.width = number_or_star();
  if (at_ < view_.size() && view_[at_] == '.') {
    ++at_;
    layout.precision = number_or_star();
  }
  while (at_ < view_.size() && (view_[at_] == 'h' || view_[at_] == 'l' || view_[at_] == 'L')) ++at_;
  if (at_ >= view_.size()) fail("incomplete format");
  char type = view_[at_++];
  if (type == '%') return out_.append("%");
  bool number = type != 's' && type != 'r' && type != 'a' && type != 'c';
  layout.align = left ? '<' : zero && number ? '=' : '>';
  if (layout.align == '=') {
    TextBuilder fill(machine_.budget());
    fill.append("0");
    layout.fill = fill.finish();
  }
  put(layout, type, value ? *value : next());
}

void PercentFormatter::put(Layout layout, char type, const Value& value) {
  Budget& budget = machine_.budget();
  if (type == 's') {
    Text text = machine_.print(value);
    if (format_.is_markup() && !text.is_markup()) text = escaped(budget, text);
    return put_text(out_, layout, text, '>');
  }
  if (type == 'r') {
    TextBuilder text(budget);
    repr_to(text, budget, value);
    return put_text(out_, layout, text.finish(), '>');
  }
  if (type == 'c' && value.text() != nullptr && count_code_points(value.text()->view()) == 1)
    return put_text(out_, layout, *value.text(), '>');
  std::optional<double> number = value.number();
  if (!number || type == 'c')
    fail(std::string("%") + type + " format: a number is required, not " + std::string(type_name(value)));
  layout.type = type == 'i' || type == 'u' ? 'd' : type;
  if (is_float_type(layout.type)) return put_float(out_, budget, layout, *number);
  if (!is_int_type(layout.type) || type == 'b') fail(std::string("unsupported format character '") + type + "'");
  std::optional<Int> integer = value.integer();
  if (!integer && layout.type != 'd') fail("an integer is required by the format");
  Int whole = integer ? *integer : whole_part(*number);
  if (layout.precision) {
    std::string digits = to_string(whole < 0 ? -whole : whole);
    if (layout.type != 'd') fail("a precision of hexadecimal numbers is not supported");
    if (*layout.precision > digits.size()) digits.insert(0, *layout.precision - digits.size(), '0');
    return put_number(out_, budget, layout, whole < 0, "", std::move(digits));
  }
  put_integer(out_, budget, layout, whole);
}

Text PercentFormatter::run() {
  while (at_ < view_.size()) {
    size_t mark = std::min(view_.find('%', at_), view_.size());
    out_.append(format_.slice(at_, mark));
    at_ = mark;
    if (at_ >= view_.size()) break;
    machine_.budget().charge(Budget::kNode);
    ++at_;
    conversion();
  }
  const Sequence* tuple = values_.sequence();
  bool is_tuple = tuple != nullptr && tuple->is_tuple();
  bool may_rest = values_.dict() != nullptr || (tuple != nullptr && !is_tuple);
  if (!may_rest && used_ < (is_tuple ? tuple->items.size() : 1))
    fail("not all arguments converted during string formatting");
  return out_.finish().as_markup(format_.is_markup());
}

// ---- "{}".format(values)

class BraceFormatter {
 public:
  BraceFormatter(Machine& machine, const Text& format, const Args& args)
      : machine_(machine), format_(format), args_(args) {}
  Text run() { return expand(format_, 2).as_markup(format_.is_markup()); }

 private:
  Text expand(const Text& format, int depth);
  size_t end_of_field(std::string_view view, size_t begin) const;
  void field(TextBuilder& out, const Text& field, int depth);
  Value lookup(std::string_view name);
  Value argument(std::string_view name);
  Layout parse(const Text& spec) const;
  void put(TextBuilder& out, const Value& value, const Text& spec);

  Machine& machine_;
  const Text& format_;
  const Args& args_;
  Int next_ = 0;  // -1: numbered by hand
};

size_t BraceFormatter::end_of_field(std::string_view view, size_t begin) const {
  int open = 1;
  for (size_t i = begin; i < view.size(); ++i) {
    if (view[i] == '{') ++open;
    if (view[i] == '}' && --open == 0) return i;
  }
  fail("expected '}' before end of string");
}

Text BraceFormatter::expand(const Text& format, int depth) {
  if (depth == 0) fail("Max string recursion exceeded");
  std::string_view view = format.view();
  TextBuilder out(machine_.budget());
  for (size_t at = 0; at < view.size();) {
    size_t mark = std::min(view.find_first_of("{}", at), view.size());
    out.append(format.slice(at, mark));
    if (mark == view.size()) break;
    machine_.budget().charge(Budget::kNode);
    if (mark + 1 < view.size() && view[mark + 1] == view[mark]) {
      out.append(format.slice(mark, mark + 1));
      at = mark + 2;
      continue;
    }
    if (view[mark] == '}') fail("Single '}' encountered in format string");
    size_t end = end_of_field(view, mark + 1);
    field(out, format.slice(mark + 1, end), depth);
    at = end + 1;
  }
  return out.finish();
}

void BraceFormatter::field(TextBuilder& out, const Text& field, int depth) {
  std::string_view view = field.view();
  size_t bracket = view.find('['), end = view.find_first_of("!:");
  if (bracket < end) end = view.find_first_of("!:", std::min(view.find(']'), view.size()));
  end = std::min(end, view.size());
  Value value = lookup(view.substr(0, end));
  size_t spec = end;
  if (end < view.size() && view[end] == '!') {
    char conversion = end + 1 < view.size() ? view[end + 1] : '\0';
    spec = end + 2;
    if (spec < view.size() && view[spec] != ':') fail("expected ':' after conversion specifier");
    TextBuilder text(machine_.budget());
    if (conversion == 'r')
      repr_to(text, machine_.budget(), value);
    else if (conversion == 's')
      print_to(text, machine_.budget(), value);
    else
      fail("the conversion of a format field must be 'r' or 's'");
    value = text.finish();
  }
  spec = std::min(spec + 1, view.size());
  Text layout = field.slice(spec, view.size());
  if (layout.view().find_first_of("{}") != std::string_view::npos) layout = expand(layout, depth - 1);
  put(out, value, layout);
}

Value BraceFormatter::argument(std::string_view name) {
  bool is_number = std::all_of(name.begin(), name.end(), [](char c) { return c >= '0' && c <= '9'; });
  if (!is_number) {
    for (const auto& [key, value] : args_.named)
      if (key == name) return value;
    fail("the format asks for '" + std::string(name) + "', which is not there");
  }
  size_t at = 0;
  Int index = static_cast<Int>(take_number(name, at));
  if (name.empty() ? next_ < 0 : next_ > 0) fail("fields of a format can't be numbered by hand and by themselves at once");
  if (name.empty())
    index = next_++;
  else
    next_ = -1;
  if (index >= static_cast<Int>(args_.positional.size())) fail("the format has more fields than there are values");
  return args_.positional[static_cast<size_t>(index)];
}

Value BraceFormatter::lookup(std::string_view name) {
  size_t at = std::min(name.find_first_of(".["), name.size());
  if (at == 0 && !name.empty()) fail("a field of the format begins with no name");
  Value value = argument(name.substr(0, at));
  while (at < name.size()) {
    bool is_item = name[at] == '[';
    size_t begin = at + 1, end = is_item ? name.find(']', begin) : std::min(name.find_first_of(".[", begin), name.size());
    if (end == std::string_view::npos || end == begin) fail("a field of the format is broken");
    std::string_view part = name.substr(begin, end - begin);
    at = is_item ? end + 1 : end;
    if (!is_item) {
      value = machine_.attribute(value, part);
      continue;
    }
    size_t digits = 0;
    Int index = static_cast<Int>(take_number(part, digits));
    TextBuilder key(machine_.budget());
    key.append(part);
    value = machine_.item(value, digits == part.size() ? Value(index) : Value(key.finish()));
  }
  return value;
}

Layout BraceFormatter::parse(const Text& spec) const {
  std::string_view view = spec.view();
  Layout layout;
  auto is_align = [](char c) { return c == '<' || c == '>' || c == '^' || c == '='; };
  size_t first = view.empty() ? 0 : code_point_at(view, 0).length, at = 0;
  if (first < view.size() && is_align(view[first])) {
    layout.fill = spec.slice(0, first);
    layout.align = view[first];
    at = first + 1;
  } else if (!view.empty() && is_align(view[0])) {
    layout.align = view[0];
    at = 1;
  }
  auto take = [&](std::string_view any) {
    return at < view.size() && any.find(view[at]) != std::string_view::npos ? view[at++] : '\0';
  };
  if (char sign = take("+- ")) layout.sign = sign;
  layout.alternate = take("#") != '\0';
  if (at < view.size() && view[at] == '0') {
    if (layout.align == '\0') layout.align = '=';
    if (layout.fill.empty()) layout.fill = spec.slice(at, at + 1);
  }
  layout.width = take_number(view, at);
  layout.group = take(",_");
  if (take(".")) {
    size_t begin = at;
    layout.precision = take_number(view, at);
    if (at == begin) fail("Format specifier missing precision");
  }
  if (at < view.size()) layout.type = view[at++];
  if (at < view.size()) fail("Invalid format specifier");
  return layout;
}

void BraceFormatter::put(TextBuilder& out, const Value& value, const Text& spec) {
  Budget& budget = machine_.budget();
  if (spec.empty()) {
    Text text = machine_.print(value);
    return out.append(format_.is_markup() && !text.is_markup() ? escaped(budget, text) : text);
  }
  Layout layout = parse(spec);
  if (const Text* text = value.text()) {
    bool zero = layout.align == '=' && layout.fill.view() == "0";
    if ((layout.type != 's' && layout.type != '\0') || (layout.align == '=' && !zero) || layout.sign != '-' ||
        layout.group != '\0')
      fail("this format specification doesn't fit a str");
    if (zero) layout.align = '<';
    return put_text(out, layout, *text, '<');
  }
  std::optional<double> number = value.number();
  if (!number) fail("unsupported format string passed to " + std::string(type_name(value)) + ".__format__");
  if (std::optional<Int> integer = value.integer(); integer && !is_float_type(layout.type)) {
    if (layout.type == '\0') layout.type = 'd';
    if (!is_int_type(layout.type) || layout.precision) fail("this format specification doesn't fit an int");
    return put_integer(out, budget, layout, *integer);
  }
  if (layout.type == '\0' && !layout.precision) {
    return put_number(out, budget, layout, std::signbit(*number), "", to_string(std::fabs(*number)));
  }
  if (layout.type == '\0') fail("a precision without a type is not supported in formats of floats");
  if (!is_float_type(layout.type)) fail("this format specification doesn't fit a float");
  put_float(out, budget, layout, *number);
}

}  // namespace

Text format_percent(Machine& machine, const Text& format, const Value& values) {
  return PercentFormatter(machine, format, values).run();
}

Text format_braces(Machine& machine, const Text& format, const Args& args) {
  return BraceFormatter(machine, format, args).run();
}

}  // namespace unisono::text::jinja

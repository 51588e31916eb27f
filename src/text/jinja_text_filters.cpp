// Filters on texts and numbers, and tojson.
#include <algorithm>
#include <cmath>
#include <string>

#include "text/jinja_eval.h"
#include "text/jinja_filters.h"
#include "text/jinja_format.h"
#include "text/jinja_numbers.h"
#include "text/jinja_operators.h"
#include "text/jinja_print.h"
#include "text/jinja_strings.h"
#include "text/jinja_unicode.h"

namespace unisono::text::jinja {

namespace {

void no_arguments(Args args, std::string_view filter) { Params(std::move(args), filter, {}); }

void refuse_undefined(const Value& value) {
  if (const Undefined* undefined = value.get<Undefined>()) fail(*undefined->why);
}

// What Python's methods would find: a str, or an error.
const Text& must_be_text(const Value& value, std::string_view filter) {
  refuse_undefined(value);
  if (value.text() == nullptr)
    fail("the filter '" + std::string(filter) + "' needs a str, not " + std::string(type_name(value)));
  return *value.text();
}

template <Text (*map)(Budget&, const Text&)>
Value mapped(Machine& machine, const Value& input, Args args) {
  no_arguments(std::move(args), "this filter");
  return map(machine.budget(), machine.print(input));
}

// The first letter of each word, and of what stands between words, is made large; the others small.
Value title_filter(Machine& machine, const Value& input, Args args) {
  no_arguments(std::move(args), "title");
  Text text = machine.print(input);
  std::string_view view = text.view();
  TextBuilder builder(machine.budget());
  auto is_border = [](char32_t c) { return c == '-' || c == '(' || c == '{' || c == '[' || c == '<' || is_space(c); };
  for (size_t at = 0; at < view.size();) {
    CodePoint first = code_point_at(view, at);
    size_t end = at + first.length;
    while (end < view.size()) {
      CodePoint c = code_point_at(view, end);
      if (is_border(c.value) != is_border(first.value)) break;
      end += c.length;
    }
    builder.append(upper(machine.budget(), text.slice(at, at + first.length)));
    builder.append(lower(machine.budget(), text.slice(at + first.length, end)));
    at = end;
  }
  return builder.finish();
}

Value trim(Machine& machine, const Value& input, Args args) {
  Params params(std::move(args), "trim", {"chars"});
  Text set = params.has_value(0) ? params.text(0) : Text();
  std::optional<std::string_view> chars;
  if (params.has_value(0)) chars = set.view();
  return strip(machine.budget(), machine.print(input), chars, Side::both);
}

Value replace_filter(Machine& machine, const Value& input, Args args) {
  Params params(std::move(args), "replace", {"old", "new", "count"}, 2);
  Text text = machine.print(input).as_markup(false);
  Int count = params.has_value(2) ? params.integer(2, -1) : -1;
  return replace(machine.budget(), text, machine.print(params[0]).view(), machine.print(params[1]), count);
}

Value string_filter(Machine& machine, const Value& input, Args args) {
  no_arguments(std::move(args), "string");
  return machine.print(input);
}

Value safe(Machine& machine, const Value& input, Args args) {
  no_arguments(std::move(args), "safe");
  return machine.print(input).as_markup();
}

Value escape_filter(Machine& machine, const Value& input, Args args) {
  no_arguments(std::move(args), "escape");
  Text text = machine.print(input);
  return text.is_markup() ? text : escaped(machine.budget(), text);
}

Value force_escape(Machine& machine, const Value& input, Args args) {
  no_arguments(std::move(args), "forceescape");
  return escaped(machine.budget(), machine.print(input));
}

Value indent(Machine& machine, const Value& input, Args args) {
  Params params(std::move(args), "indent", {"width", "first", "blank"});
  Budget& budget = machine.budget();
  const Text& text = must_be_text(input, "indent");
  Text indention;
  if (params.has(0) && params[0].text() != nullptr)
    indention = params.text(0);
  else
    indention = *repeated(machine, Text::constant(" "), params.integer(0, 4)).text();
  if (text.is_markup() && !indention.is_markup()) indention = escaped(budget, indention);
  Text newline = Text::constant("\n");
  std::vector<Value> lines = split_lines(budget, concat(budget, text, newline), false);
  TextBuilder builder(budget);
  if (params.truth(1, false)) builder.append(indention);
  for (size_t i = 0; i < lines.size(); ++i) {
    if (i > 0) builder.append(newline);
    if (i > 0 && (params.truth(2, false) || !lines[i].text()->empty())) builder.append(indention);
    builder.append(*lines[i].text());
  }
  return builder.finish().as_markup(text.is_markup());
}

Value center(Machine& machine, const Value& input, Args args) {
  Params params(std::move(args), "center", {"width"});
  return padded(machine.budget(), machine.print(input), params.integer(0, 80), Text::constant(" "), Side::both);
}

Value word_count(Machine& machine, const Value& input, Args args) {
  no_arguments(std::move(args), "wordcount");
  Text text = machine.print(input);
  std::string_view view = text.view();
  machine.budget().charge(view.size());
  size_t words = 0;
  bool in_word = false;
  for (size_t i = 0; i < view.size();) {
    CodePoint c = code_point_at(view, i);
    bool word = is_word(c.value);
    words += word && !in_word;
    in_word = word;
    i += c.length;
  }
  return words;
}

Value truncate(Machine& machine, const Value& input, Args args) {
  Params params(std::move(args), "truncate", {"length", "killwords", "end", "leeway"});
  const Text& text = must_be_text(input, "truncate");
  Text end = params.has(2) ? params.text(2) : Text::constant("...");
  Int length = params.integer(0, 255), leeway = params.has_value(3) ? params.integer(3, 5) : 5;
  machine.budget().charge((text.size() + end.size()) / 8);
  Int end_length = static_cast<Int>(count_code_points(end.view()));
  if (length < end_length || leeway < 0) fail("the length that 'truncate' is given is too small");
  if (static_cast<Int>(count_code_points(text.view())) <= length + leeway) return text;
  Text head = text.slice(0, offset_of(text.view(), static_cast<size_t>(length - end_length)));
  if (!params.truth(1, false)) {
    size_t space = head.view().rfind(' ');
    if (space != std::string_view::npos) head = head.slice(0, space);
  }
  return add(machine, head, end);
}

Value format_filter(Machine& machine, const Value& input, Args args) {
  if (!args.positional.empty() && !args.named.empty())
    fail("'format' can't handle positional and keyword arguments at the same time");
  Text text = machine.print(input);
  if (args.named.empty()) return format_percent(machine, text, make_tuple(std::move(args.positional)));
  Dict dict;
  for (auto& [name, value] : args.named) {
    TextBuilder key(machine.budget());
    key.append(name);
    dict.set(machine.budget(), key.finish(), std::move(value));
  }
  return format_percent(machine, text, make_dict(std::move(dict)));
}

Value int_filter(Machine& machine, const Value& input, Args args) {
  Params params(std::move(args), "int", {"default", "base"});
  Value fallback = params.take_or(0, 0);
  refuse_undefined(input);
  if (const Text* text = input.text()) {
    machine.budget().charge(text->size());
    Int base = params.integer(1, 10);
    if (base != 0 && (base < 2 || base > 36)) return fallback;
    if (std::optional<Int> value = parse_int(text->view(), static_cast<int>(base))) return *value;
    std::optional<double> value = parse_float(text->view());
    return value && std::isfinite(*value) ? Value(whole_part(*value)) : fallback;
  }
  if (std::optional<Int> value = input.integer()) return *value;
  const double* number = input.get<double>();
  if (number == nullptr || std::isnan(*number)) return fallback;
  return whole_part(*number);
}

Value float_filter(Machine& machine, const Value& input, Args args) {
  Params params(std::move(args), "float", {"default"});
  refuse_undefined(input);
  if (input.text() != nullptr) machine.budget().charge(input.text()->size());
  std::optional<double> value = input.text() != nullptr ? parse_float(input.text()->view()) : input.number();
  return value ? Value(*value) : params.take_or(0, 0.0);
}

Value abs_filter(Machine&, const Value& input, Args args) {
  no_arguments(std::move(args), "abs");
  refuse_undefined(input);
  if (const double* number = input.get<double>()) return std::fabs(*number);
  std::optional<Int> value = input.integer();
  if (!value) fail("bad operand type for abs(): '" + std::string(type_name(input)) + "'");
  return *value < 0 ? negative(*value) : Value(*value);
}

Value round_filter(Machine&, const Value& input, Args args) {
  Params params(std::move(args), "round", {"precision", "method"});
  refuse_undefined(input);
  std::optional<double> number = input.number();
  if (!number) fail("type " + std::string(type_name(input)) + " can't be rounded");
  auto digits = static_cast<int>(std::clamp<Int>(params.integer(0, 0), -1000, 1000));
  std::string method = params.has(1) ? std::string(params.text(1).view()) : "common";
  if (method == "common") {
    if (input.get<double>() != nullptr) return rounded(*number, digits);
    return digits >= 0 ? Value(*input.integer()) : Value(whole_part(rounded(*number, digits)));
  }
  if (method != "ceil" && method != "floor") fail("the method of 'round' must be common, ceil or floor");
  double power = std::pow(10.0, digits);
  double scaled = *number * power;
  return (method == "ceil" ? std::ceil(scaled) : std::floor(scaled)) / power;
}

Text blanks(Machine& machine, Int n) { return *repeated(machine, Text::constant(" "), n).text(); }

// As Hugging Face defines it: json.dumps, without the escapes for HTML that Jinja's own has.
Value tojson(Machine& machine, const Value& input, Args args) {
  Params params(std::move(args), "tojson", {"ensure_ascii", "indent", "separators", "sort_keys"});
  JsonStyle style;
  style.ensure_ascii = params.truth(0, false);
  style.sort_keys = params.truth(3, false);
  if (params.has_value(1))
    style.indent = params[1].text() != nullptr ? params.text(1) : blanks(machine, params.integer(1, 0));
  style.item_separator = Text::constant(style.indent ? "," : ", ");
  style.key_separator = Text::constant(": ");
  if (params.has_value(2)) {
    std::vector<Value> separators = machine.elements(params[2]);
    if (separators.size() != 2 || separators[0].text() == nullptr || separators[1].text() == nullptr)
      fail("the separators of 'tojson' are two strings");
    style.item_separator = *separators[0].text();
    style.key_separator = *separators[1].text();
  }
  return to_json(machine.budget(), input, style);
}

}  // namespace

const Filters& text_filters() {
  static const Filters filters = {
      {"upper", mapped<upper>},
      {"lower", mapped<lower>},
      {"capitalize", mapped<capitalize>},
      {"title", title_filter},
      {"trim", trim},
      {"replace", replace_filter},
      {"string", string_filter},
      {"safe", safe},
      {"escape", escape_filter},
      {"e", escape_filter},
      {"forceescape", force_escape},
      {"indent", indent},
      {"center", center},
      {"wordcount", word_count},
      {"truncate", truncate},
      {"format", format_filter},
      {"int", int_filter},
      {"float", float_filter},
      {"abs", abs_filter},
      {"round", round_filter},
      {"tojson", tojson},
  };
  return filters;
}

}  // namespace unisono::text::jinja

// The methods of str, list, tuple and dict that templates may call.
#include <algorithm>
#include <string>
#include <unordered_map>

#include "text/jinja_builtins.h"
#include "text/jinja_format.h"
#include "text/jinja_objects.h"
#include "text/jinja_operators.h"
#include "text/jinja_strings.h"
#include "text/jinja_unicode.h"

namespace unisono::text::jinja {

namespace {

using Body = Builtin::Body;
using Methods = std::unordered_map<std::string_view, Body>;

const Text& text_of(const Value& self) { return *self.text(); }

// What is joined to, or put into, a Markup is escaped first.
Text fitting(Machine& machine, const Text& self, const Text& other) {
  return self.is_markup() && !other.is_markup() ? escaped(machine.budget(), other) : other;
}

std::optional<std::string_view> optional_text(const Params& params, size_t i, Text& holder) {
  if (!params.has_value(i)) return std::nullopt;
  holder = params.text(i);
  return holder.view();
}

template <Side side>
Value strip_method(Machine& machine, const Value& self, Args args) {
  Params params(std::move(args), "strip", {""});
  Text set;
  return strip(machine.budget(), text_of(self), optional_text(params, 0, set), side);
}

template <std::vector<Value> (*cut)(Budget&, const Text&, std::optional<std::string_view>, Int)>
Value split_method(Machine& machine, const Value& self, Args args) {
  Params params(std::move(args), "split", {"sep", "maxsplit"});
  Text separator;
  return make_list(cut(machine.budget(), text_of(self), optional_text(params, 0, separator), params.integer(1, -1)));
}

Value split_lines_method(Machine& machine, const Value& self, Args args) {
  Params params(std::move(args), "splitlines", {"keepends"});
  return make_list(split_lines(machine.budget(), text_of(self), params.truth(0, false)));
}

template <Text (*map)(Budget&, const Text&)>
Value map_method(Machine& machine, const Value& self, Args args) {
  Params(std::move(args), "a method without parameters", {});
  return map(machine.budget(), text_of(self));
}

Value replace_method(Machine& machine, const Value& self, Args args) {
  Params params(std::move(args), "replace", {"", "", ""}, 2);
  const Text& text = text_of(self);
  return replace(machine.budget(), text, params.text(0).view(), fitting(machine, text, params.text(1)),
                 params.integer(2, -1));
}

Value join_method(Machine& machine, const Value& self, Args args) {
  Params params(std::move(args), "join", {""}, 1);
  std::vector<Text> parts;
  for (const Value& part : machine.elements(params[0])) {
    if (part.text() == nullptr) fail("join needs strings, not " + std::string(type_name(part)));
    parts.push_back(fitting(machine, text_of(self), *part.text()));
  }
  return join(machine.budget(), text_of(self), parts);
}

// The part of a text that [start, end) gives, in code points, and where it begins in bytes.
struct Part {
  Text text{};
  size_t begin = 0;
  bool beyond = false;  // start lies behind the end: then not even "" is found
};

Part part_of(Machine& machine, const Text& text, const Params& params, size_t start, size_t end) {
  if (!params.has_value(start) && !params.has_value(end)) return {text, 0, false};
  Int length = static_cast<Int>(count_code_points(text.view()));
  machine.budget().charge(text.size() / 8);
  auto place = [&](size_t i, Int fallback) {
    Int at = params.has_value(i) ? params.integer(i, 0) : fallback;
    return std::max<Int>(at < 0 ? at + length : at, 0);
  };
  Int first = place(start, 0), last = std::min(place(end, length), length);
  if (first > last) return {{}, 0, true};
  size_t begin = offset_of(text.view(), static_cast<size_t>(first));
  size_t size = offset_of(text.view().substr(begin), static_cast<size_t>(last - first));
  return {text.slice(begin, begin + size), begin, false};
}

Int find_in(Machine& machine, const Text& text, Args args, bool from_right) {
  Params params(std::move(args), "find", {"", "", ""}, 1);
  Part part = part_of(machine, text, params, 1, 2);
  machine.budget().charge(part.text.size() / (from_right ? 1 : 8));
  Text needle = params.text(0);
  size_t found = from_right ? find_last(part.text.view(), needle.view()) : find_first(part.text.view(), needle.view());
  if (found == kNotFound || part.beyond) return -1;
  return static_cast<Int>(count_code_points(text.view().substr(0, part.begin + found)));
}

template <bool from_right, bool must>
Value find_method_of_str(Machine& machine, const Value& self, Args args) {
  Int found = find_in(machine, text_of(self), std::move(args), from_right);
  if (must && found < 0) fail("substring not found");
  return found;
}

Value count_method(Machine& machine, const Value& self, Args args) {
  Params params(std::move(args), "count", {"", "", ""}, 1);
  Part part = part_of(machine, text_of(self), params, 1, 2);
  machine.budget().charge(part.text.size() / 8);
  Text needle = params.text(0);
  std::string_view view = part.text.view();
  if (part.beyond) return 0;
  if (needle.empty()) return count_code_points(view) + 1;
  size_t n = 0;
  for (size_t at = find_first(view, needle.view()); at != kNotFound;
       at = find_first(view, needle.view(), at + needle.size()))
    ++n;
  return n;
}

template <bool at_end>
Value starts_or_ends(Machine& machine, const Value& self, Args args) {
  Params params(std::move(args), at_end ? "endswith" : "startswith", {"", "", ""}, 1);
  Part part = part_of(machine, text_of(self), params, 1, 2);
  auto holds = [&](const Value& affix) {
    if (affix.text() == nullptr) fail("startswith and endswith need a str or a tuple of str");
    std::string_view view = part.text.view(), wanted = affix.text()->view();
    machine.budget().charge(Budget::kNode + wanted.size() / 8);
    return !part.beyond && (at_end ? view.ends_with(wanted) : view.starts_with(wanted));
  };
  const Sequence* several = params[0].sequence();
  if (several == nullptr || !several->is_tuple()) return holds(params[0]);
  return std::any_of(several->items.begin(), several->items.end(), holds);
}

template <bool at_end>
Value remove_affix(Machine& machine, const Value& self, Args args) {
  Params params(std::move(args), "removeprefix", {""}, 1);
  const Text& text = text_of(self);
  Text affix = params.text(0);
  machine.budget().charge(affix.size() / 8);
  bool there = at_end ? text.view().ends_with(affix.view()) : text.view().starts_with(affix.view());
  if (!there) return text;
  return at_end ? text.slice(0, text.size() - affix.size()) : text.slice(affix.size(), text.size());
}

template <bool from_right>
Value partition(Machine& machine, const Value& self, Args args) {
  Params params(std::move(args), "partition", {""}, 1);
  const Text& text = text_of(self);
  Text separator = params.text(0);
  if (separator.empty()) fail("empty separator");
  machine.budget().charge(text.size() / (from_right ? 1 : 8));
  size_t found = from_right ? find_last(text.view(), separator.view()) : find_first(text.view(), separator.view());
  Text empty = text.slice(0, 0);
  if (found == kNotFound) return from_right ? make_tuple({empty, empty, text}) : make_tuple({text, empty, empty});
  size_t after = found + separator.size();
  return make_tuple({text.slice(0, found), text.slice(found, after), text.slice(after, text.size())});
}

template <Side side>
Value pad_method(Machine& machine, const Value& self, Args args) {
  Params params(std::move(args), "center", {"", ""}, 1);
  Text fill = params.has(1) ? params.text(1) : Text::constant(" ");
  return padded(machine.budget(), text_of(self), params.integer(0, 0), fill, side);
}

Value zfill(Machine& machine, const Value& self, Args args) {
  Params params(std::move(args), "zfill", {""}, 1);
  const Text& text = text_of(self);
  size_t sign = text.view().starts_with('-') || text.view().starts_with('+') ? 1 : 0;
  Text digits = padded(machine.budget(), text.slice(sign, text.size()), params.integer(0, 0) - static_cast<Int>(sign),
                       Text::constant("0"), Side::right);
  return concat(machine.budget(), text.slice(0, sign), digits).as_markup(text.is_markup());
}

Value format_method(Machine& machine, const Value& self, Args args) { return format_braces(machine, text_of(self), args); }

// Whether every character is of a kind, and there is one.
template <bool (*is)(char32_t)>
Value all_are(Machine& machine, const Value& self, Args) {
  std::string_view view = text_of(self).view();
  machine.budget().charge(view.size());
  for (size_t i = 0; i < view.size();) {
    CodePoint c = code_point_at(view, i);
    if (!is(c.value)) return false;
    i += c.length;
  }
  return !view.empty();
}

bool is_alnum(char32_t c) { return c != '_' && is_word(c); }
bool is_ascii(char32_t c) { return c < 0x80; }

Value is_ascii_method(Machine& machine, const Value& self, Args args) {
  return text_of(self).empty() ? Value(true) : all_are<is_ascii>(machine, self, std::move(args));
}

template <bool upper_case>
Value is_case(Machine& machine, const Value& self, Args args) {
  return (*find_test(upper_case ? "upper" : "lower"))(machine, self, std::move(args));
}

const Methods& str_methods() {
  static const Methods methods = {
      {"strip", strip_method<Side::both>},
      {"lstrip", strip_method<Side::left>},
      {"rstrip", strip_method<Side::right>},
      {"split", split_method<split>},
      {"rsplit", split_method<split_from_right>},
      {"splitlines", split_lines_method},
      {"lower", map_method<lower>},
      {"upper", map_method<upper>},
      {"title", map_method<title>},
      {"capitalize", map_method<capitalize>},
      {"swapcase", map_method<swapcase>},
      {"replace", replace_method},
      {"join", join_method},
      {"find", find_method_of_str<false, false>},
      {"rfind", find_method_of_str<true, false>},
      {"index", find_method_of_str<false, true>},
      {"rindex", find_method_of_str<true, true>},
      {"count", count_method},
      {"startswith", starts_or_ends<false>},
      {"endswith", starts_or_ends<true>},
      {"removeprefix", remove_affix<false>},
      {"removesuffix", remove_affix<true>},
      {"partition", partition<false>},
      {"rpartition", partition<true>},
      {"ljust", pad_method<Side::left>},
      {"rjust", pad_method<Side::right>},
      {"center", pad_method<Side::both>},
      {"zfill", zfill},
      {"format", format_method},
      {"isspace", all_are<is_space>},
      {"isalpha", all_are<is_alpha>},
      {"isdigit", all_are<is_digit>},
      {"isdecimal", all_are<is_digit>},
      {"isnumeric", all_are<is_digit>},
      {"isalnum", all_are<is_alnum>},
      {"isascii", is_ascii_method},
      {"islower", is_case<false>},
      {"isupper", is_case<true>},
  };
  return methods;
}

Value list_index(Machine& machine, const Value& self, Args args) {
  Params params(std::move(args), "index", {""}, 1);
  const std::vector<Value>& items = self.sequence()->items;
  for (size_t i = 0; i < items.size(); ++i)
    if (equal(machine.budget(), items[i], params[0])) return i;
  fail("the value is not in the list");
}

Value list_count(Machine& machine, const Value& self, Args args) {
  Params params(std::move(args), "count", {""}, 1);
  const std::vector<Value>& items = self.sequence()->items;
  auto same = [&](const Value& item) { return equal(machine.budget(), item, params[0]); };
  return static_cast<size_t>(std::count_if(items.begin(), items.end(), same));
}

Value same_value(Machine&, const Value& self, Args args) {
  Params(std::move(args), "copy", {});
  return self;
}

const Methods& tuple_methods() {
  static const Methods methods = {{"index", list_index}, {"count", list_count}};
  return methods;
}

const Methods& list_methods() {
  static const Methods methods = {{"index", list_index}, {"count", list_count}, {"copy", same_value}};
  return methods;
}

Value dict_get(Machine& machine, const Value& self, Args args) {
  Params params(std::move(args), "get", {"", ""}, 1);
  const Value* found = self.dict()->find(machine.budget(), params[0]);
  return found != nullptr ? *found : params.take_or(1, None{});
}

template <SequenceKind kind>
Value dict_view(Machine& machine, const Value& self, Args args) {
  Params(std::move(args), "a view of a dict", {});
  const Dict& dict = *self.dict();
  machine.budget().charge(dict.entries.size() * Budget::kElement);
  std::vector<Value> items;
  items.reserve(dict.entries.size());
  for (const auto& [key, value] : dict.entries) {
    if (kind == SequenceKind::items)
      items.push_back(make_tuple({key, value}));
    else
      items.push_back(kind == SequenceKind::keys ? key : value);
  }
  return make_sequence(kind, std::move(items), dict.from_user);
}

const Methods& dict_methods() {
  static const Methods methods = {{"get", dict_get},
                                  {"items", dict_view<SequenceKind::items>},
                                  {"keys", dict_view<SequenceKind::keys>},
                                  {"values", dict_view<SequenceKind::values>},
                                  {"copy", same_value}};
  return methods;
}

using NameList = std::initializer_list<std::string_view>;
bool is_in(NameList names, std::string_view name) { return std::find(names.begin(), names.end(), name) != names.end(); }

// Methods that change lists and dicts, which the sandbox forbids.
bool changes(const Value& self, std::string_view name) {
  if (self.dict() != nullptr) return is_in({"clear", "pop", "popitem", "setdefault", "update"}, name);
  return is_in({"append", "clear", "pop", "reverse", "insert", "sort", "extend", "remove"}, name);
}

bool is_unsupported(const Value& self, std::string_view name) {
  if (self.text() != nullptr)
    return is_in({"casefold", "encode", "expandtabs", "format_map", "isidentifier", "isprintable", "istitle", "maketrans",
                  "translate"},
                 name);
  if (self.dict() != nullptr) return name == "fromkeys";
  if (self.number())
    return is_in({"real", "imag", "numerator", "denominator", "conjugate", "bit_length", "bit_count", "as_integer_ratio",
                  "is_integer", "hex", "fromhex", "to_bytes", "from_bytes"},
                 name);
  return false;
}

}  // namespace

std::optional<Value> find_method(Machine& machine, const Value& self, std::string_view name) {
  const Methods* methods = nullptr;
  const Sequence* s = self.sequence();
  if (self.text() != nullptr) methods = &str_methods();
  if (self.dict() != nullptr) methods = &dict_methods();
  if (s != nullptr && s->is_indexed()) methods = s->kind == SequenceKind::list ? &list_methods() : &tuple_methods();
  if (s != nullptr && s->kind == SequenceKind::group && (name == "grouper" || name == "list"))
    return s->items[name == "list"];
  bool changeable = self.dict() != nullptr || (s != nullptr && s->kind == SequenceKind::list);
  if (changeable && changes(self, name))
    return undefined("access to attribute '" + std::string(name) + "' of '" + std::string(type_name(self)) +
                     "' object is unsafe.");
  if (is_unsupported(self, name))
    fail("the method '" + std::string(name) + "' of " + std::string(type_name(self)) + " is not supported.");
  if (methods == nullptr) return std::nullopt;
  auto entry = methods->find(name);
  if (entry == methods->end()) return std::nullopt;
  machine.budget().charge(Budget::kObject);
  return Value(make_builtin(entry->first, entry->second, self));
}

}  // namespace unisono::text::jinja

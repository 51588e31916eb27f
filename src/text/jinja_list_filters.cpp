// Filters on lists and dicts.
#include <algorithm>
#include <optional>
#include <string>

#include "text/jinja_eval.h"
#include "text/jinja_filters.h"
#include "text/jinja_operators.h"
#include "text/jinja_strings.h"
#include "text/jinja_unicode.h"

namespace unisono::text::jinja {

namespace {

Value iterator(std::vector<Value> items) { return make_sequence(SequenceKind::iterator, std::move(items)); }

bool from_user(const Value& value) {
  const Sequence* s = value.sequence();
  return s != nullptr && s->from_user;
}

// "a.b.0" as Jinja takes it apart to reach into elements.
class Getter {
 public:
  Getter(Machine& machine, const Value& attribute, Value fallback = {})
      : machine_(machine), fallback_(std::move(fallback)) {
    if (attribute.is<Missing>() || attribute.is<None>()) return;
    if (attribute.text() == nullptr) {
      parts_.push_back(attribute);
      return;
    }
    for (Value& part : split(machine.budget(), *attribute.text(), ".", -1)) {
      std::string_view view = part.text()->view();
      bool number = !view.empty() && std::all_of(view.begin(), view.end(), [](char c) { return c >= '0' && c <= '9'; });
      if (!number) {
        parts_.push_back(std::move(part));
        continue;
      }
      if (view.size() > 18) fail("an attribute's number is too large");
      parts_.push_back(Int(std::stoll(std::string(view))));
    }
  }
  Value operator()(const Value& item) const {
    Value value = item;
    for (const Value& part : parts_) {
      value = machine_.item(value, part);
      if (value.is<Undefined>() && !fallback_.is<Missing>() && !fallback_.is<None>()) value = fallback_;
    }
    return value;
  }

 private:
  Machine& machine_;
  Value fallback_;
  std::vector<Value> parts_{};
};

// What values are compared by: without case, unless it counts.
Value comparable(Machine& machine, Value value, bool case_sensitive) {
  if (case_sensitive || value.text() == nullptr) return value;
  return lower(machine.budget(), *value.text());
}

struct Keyed {
  Value key{}, item{};
};

std::vector<Value> sorted(Machine& machine, std::vector<Keyed> keyed, bool reverse) {
  auto before = [&](const Keyed& a, const Keyed& b) {
    return reverse ? less(machine.budget(), b.key, a.key) : less(machine.budget(), a.key, b.key);
  };
  machine.budget().charge(keyed.size() * Budget::kElement);
  std::stable_sort(keyed.begin(), keyed.end(), before);
  std::vector<Value> items;
  items.reserve(keyed.size());
  for (Keyed& entry : keyed) items.push_back(std::move(entry.item));
  return items;
}

Value length(Machine& machine, const Value& input, Args args) {
  Params(std::move(args), "length", {});
  if (const Text* text = input.text()) {
    machine.budget().charge(text->size() / 8);
    return count_code_points(text->view());
  }
  if (const Sequence* s = input.sequence(); s != nullptr && s->kind != SequenceKind::iterator) return s->items.size();
  if (const Dict* dict = input.dict()) return dict->entries.size();
  if (input.is<Undefined>()) return 0;
  if (Object* object = input.object(); object != nullptr && object->type_name() == "LoopContext")
    return *object->attribute(machine, "length");
  fail("object of type '" + std::string(type_name(input)) + "' has no len()");
}

Value list(Machine& machine, const Value& input, Args args) {
  Params(std::move(args), "list", {});
  return make_sequence(SequenceKind::list, machine.elements(input), from_user(input));
}

Value default_filter(Machine&, const Value& input, Args args) {
  Params params(std::move(args), "default", {"default_value", "boolean"});
  bool missing = input.is<Undefined>() || (params.truth(1, false) && !truth(input));
  return missing ? params.take_or(0, Text()) : input;
}

Value join_filter(Machine& machine, const Value& input, Args args) {
  Params params(std::move(args), "join", {"d", "attribute"});
  Getter getter(machine, params.take_or(1, {}));
  std::vector<Text> parts;
  for (const Value& item : machine.elements(input)) parts.push_back(machine.print(getter(item)));
  Text separator = params.has(0) ? machine.print(params[0]) : Text();
  return join(machine.budget(), separator.as_markup(false), parts);
}

Value first(Machine& machine, const Value& input, Args args) {
  Params(std::move(args), "first", {});
  Value element;
  Iteration iteration(machine.budget(), input);
  return iteration.next(element) ? element : undefined("No first item, sequence was empty.");
}

std::optional<std::vector<Value>> reversed_elements(Machine& machine, const Value& input) {
  const Sequence* s = input.sequence();
  if (s != nullptr && s->kind == SequenceKind::iterator) return std::nullopt;
  std::vector<Value> items = machine.elements(input);
  std::reverse(items.begin(), items.end());
  return items;
}

Value last(Machine& machine, const Value& input, Args args) {
  Params(std::move(args), "last", {});
  std::optional<std::vector<Value>> items = reversed_elements(machine, input);
  if (!items) fail("'generator' object is not reversible");
  return items->empty() ? undefined("No last item, sequence was empty.") : (*items)[0];
}

Value reverse(Machine& machine, const Value& input, Args args) {
  Params(std::move(args), "reverse", {});
  if (input.text() != nullptr) return slice(machine, input, {}, {}, -1);
  if (std::optional<std::vector<Value>> items = reversed_elements(machine, input)) return iterator(std::move(*items));
  std::vector<Value> items = machine.elements(input);
  std::reverse(items.begin(), items.end());
  return make_list(std::move(items));
}

Value items(Machine& machine, const Value& input, Args args) {
  Params(std::move(args), "items", {});
  if (input.is<Undefined>()) return iterator({});
  if (input.dict() == nullptr) fail("Can only get item pairs from a mapping.");
  return iterator(machine.elements(machine.call(*find_method(machine, input, "items"), {})));
}

Value map_filter(Machine& machine, const Value& input, Args args) {
  if (!truth(input)) return iterator({});
  std::vector<Value> results;
  if (args.positional.empty() && !args.named.empty() &&
      std::any_of(args.named.begin(), args.named.end(), [](const auto& arg) { return arg.first == "attribute"; })) {
    Params params(std::move(args), "map", {"attribute", "default"});
    Getter getter(machine, params[0], params.take_or(1, {}));
    for (const Value& item : machine.elements(input)) results.push_back(getter(item));
    return iterator(std::move(results));
  }
  if (args.positional.empty() || args.positional[0].text() == nullptr) fail("map requires a filter argument");
  Text name = *args.positional[0].text();
  args.positional.erase(args.positional.begin());
  for (const Value& item : machine.elements(input)) results.push_back(machine.filter(name.view(), item, args));
  return iterator(std::move(results));
}

template <bool wanted, bool by_attribute>
Value select(Machine& machine, const Value& input, Args args) {
  if (!truth(input)) return iterator({});
  Value attribute;
  if (by_attribute) {
    if (args.positional.empty()) fail("Missing parameter for attribute name");
    attribute = args.positional[0];
    args.positional.erase(args.positional.begin());
  }
  Getter getter(machine, attribute);
  Text name;
  bool has_test = !args.positional.empty();
  if (has_test) {
    if (args.positional[0].text() == nullptr) fail("the name of a test is a string");
    name = *args.positional[0].text();
    args.positional.erase(args.positional.begin());
  }
  std::vector<Value> results;
  for (const Value& item : machine.elements(input)) {
    Value value = getter(item);
    bool holds = has_test ? machine.test(name.view(), value, args) : truth(value);
    if (holds == wanted) results.push_back(item);
  }
  return iterator(std::move(results));
}

Value sort(Machine& machine, const Value& input, Args args) {
  Params params(std::move(args), "sort", {"reverse", "case_sensitive", "attribute"});
  std::vector<Getter> getters;
  if (params.has(2) && params[2].text() != nullptr)
    for (const Value& part : split(machine.budget(), *params[2].text(), ",", -1)) getters.emplace_back(machine, part);
  else
    getters.emplace_back(machine, params.take_or(2, {}));
  std::vector<Keyed> keyed;
  for (Value& item : machine.elements(input)) {
    std::vector<Value> key;
    for (const Getter& getter : getters) key.push_back(comparable(machine, getter(item), params.truth(1, false)));
    keyed.push_back({make_list(std::move(key)), std::move(item)});
  }
  return make_sequence(SequenceKind::list, sorted(machine, std::move(keyed), params.truth(0, false)), from_user(input));
}

Value dictsort(Machine& machine, const Value& input, Args args) {
  Params params(std::move(args), "dictsort", {"case_sensitive", "by", "reverse"});
  std::string_view by = params.has(1) ? params.text(1).view() : "key";
  if (by != "key" && by != "value") fail("You can only sort by either \"key\" or \"value\"");
  const Dict* dict = input.dict();
  if (dict == nullptr) fail("'dictsort' needs a dict, not " + std::string(type_name(input)));
  std::vector<Keyed> keyed;
  machine.budget().charge(dict->entries.size() * 3 * Budget::kElement);
  for (const auto& [key, value] : dict->entries)
    keyed.push_back({comparable(machine, by == "key" ? key : value, params.truth(0, false)), make_tuple({key, value})});
  return make_sequence(SequenceKind::list, sorted(machine, std::move(keyed), params.truth(2, false)), dict->from_user);
}

Value unique(Machine& machine, const Value& input, Args args) {
  Params params(std::move(args), "unique", {"case_sensitive", "attribute"});
  Getter getter(machine, params.take_or(1, {}));
  Dict seen;
  std::vector<Value> results;
  for (Value& item : machine.elements(input)) {
    Value key = comparable(machine, getter(item), params.truth(0, false));
    if (seen.find(machine.budget(), key) != nullptr) continue;
    seen.set(machine.budget(), std::move(key), true);
    results.push_back(std::move(item));
  }
  return iterator(std::move(results));
}

template <bool largest>
Value extreme(Machine& machine, const Value& input, Args args) {
  Params params(std::move(args), largest ? "max" : "min", {"case_sensitive", "attribute"});
  Getter getter(machine, params.take_or(1, {}));
  std::optional<Keyed> best;
  for (Value& item : machine.elements(input)) {
    Value key = comparable(machine, getter(item), params.truth(0, false));
    if (!best || less(machine.budget(), largest ? best->key : key, largest ? key : best->key))
      best = {std::move(key), item};
  }
  return best ? best->item : undefined("No aggregated item, sequence was empty.");
}

Value sum(Machine& machine, const Value& input, Args args) {
  Params params(std::move(args), "sum", {"attribute", "start"});
  Getter getter(machine, params.take_or(0, {}));
  Value total = params.take_or(1, 0);
  if (total.text() != nullptr) fail("sum() can't sum strings [use ''.join(seq) instead]");
  for (const Value& item : machine.elements(input)) total = add(machine, total, getter(item));
  return total;
}

Value batch(Machine& machine, const Value& input, Args args) {
  Params params(std::move(args), "batch", {"linecount", "fill_with"}, 1);
  Int size = params.integer(0, 0);
  std::vector<Value> rows, row;
  for (Value& item : machine.elements(input)) {
    if (static_cast<Int>(row.size()) == size) rows.push_back(make_list(std::exchange(row, {})));
    row.push_back(std::move(item));
  }
  if (row.empty()) return iterator(std::move(rows));
  while (params.has_value(1) && static_cast<Int>(row.size()) < size) {
    machine.budget().charge(Budget::kElement);
    row.push_back(params[1]);
  }
  rows.push_back(make_list(std::move(row)));
  return iterator(std::move(rows));
}

Value slice_filter(Machine& machine, const Value& input, Args args) {
  Params params(std::move(args), "slice", {"slices", "fill_with"}, 1);
  std::vector<Value> items = machine.elements(input), columns;
  Int n = params.integer(0, 0), at = 0, size = static_cast<Int>(items.size());
  if (n == 0) fail("division by zero");
  for (Int i = 0; i < n; ++i) {
    machine.budget().charge(Budget::kElement * 2);
    Int count = size / n + (i < size % n);
    std::vector<Value> column(items.begin() + static_cast<std::ptrdiff_t>(at),
                              items.begin() + static_cast<std::ptrdiff_t>(at + count));
    if (params.has_value(1) && i >= size % n) column.push_back(params[1]);
    columns.push_back(make_list(std::move(column)));
    at += count;
  }
  return iterator(std::move(columns));
}

Value groupby(Machine& machine, const Value& input, Args args) {
  Params params(std::move(args), "groupby", {"attribute", "default", "case_sensitive"}, 1);
  Getter getter(machine, params[0], params.take_or(1, {}));
  bool case_sensitive = params.truth(2, false);
  std::vector<Keyed> keyed;
  for (Value& item : machine.elements(input))
    keyed.push_back({comparable(machine, getter(item), case_sensitive), std::move(item)});
  std::vector<Value> groups, group;
  Value group_key;
  auto finish = [&] {
    if (group.empty()) return;
    Value name = getter(group[0]);
    groups.push_back(make_sequence(SequenceKind::group, {name, make_list(std::exchange(group, {}))}));
  };
  for (Value& item : sorted(machine, std::move(keyed), false)) {
    Value key = comparable(machine, getter(item), case_sensitive);
    if (!group.empty() && !equal(machine.budget(), group_key, key)) finish();
    group_key = std::move(key);
    group.push_back(std::move(item));
  }
  finish();
  return make_list(std::move(groups));
}

Value attr(Machine& machine, const Value& input, Args args) {
  Params params(std::move(args), "attr", {"name"}, 1);
  Text name = params.text(0);
  bool there = input.object() != nullptr || input.is<Undefined>() || find_method(machine, input, name.view());
  if (there) return machine.attribute(input, name.view());
  return undefined("'" + std::string(type_name(input)) + " object' has no attribute '" + std::string(name.view()) + "'");
}

}  // namespace

const Filters& list_filters() {
  static const Filters filters = {
      {"length", length},
      {"count", length},
      {"list", list},
      {"default", default_filter},
      {"d", default_filter},
      {"join", join_filter},
      {"first", first},
      {"last", last},
      {"reverse", reverse},
      {"items", items},
      {"map", map_filter},
      {"select", select<true, false>},
      {"reject", select<false, false>},
      {"selectattr", select<true, true>},
      {"rejectattr", select<false, true>},
      {"sort", sort},
      {"dictsort", dictsort},
      {"unique", unique},
      {"min", extreme<false>},
      {"max", extreme<true>},
      {"sum", sum},
      {"batch", batch},
      {"slice", slice_filter},
      {"groupby", groupby},
      {"attr", attr},
  };
  return filters;
}

const Filter* find_filter(std::string_view name) {
  for (const Filters* filters : {&text_filters(), &list_filters()})
    if (auto entry = filters->find(name); entry != filters->end()) return &entry->second;
  return nullptr;
}

bool is_unsupported_filter(std::string_view name) {
  constexpr std::string_view kNames[] = {"filesizeformat", "pprint", "random",   "striptags",
                                         "urlencode",      "urlize", "wordwrap", "xmlattr"};
  return std::find(std::begin(kNames), std::end(kNames), name) != std::end(kNames);
}

}  // namespace unisono::text::jinja

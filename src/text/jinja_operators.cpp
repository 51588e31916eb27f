#include "text/jinja_operators.h"

#include <algorithm>
#include <cmath>

#include "text/jinja_eval.h"
#include "text/jinja_format.h"
#include "text/jinja_unicode.h"

namespace unisono::text::jinja {

namespace {

void refuse_undefined(const Value& value) {
  if (const Undefined* undefined = value.get<Undefined>()) fail(*undefined->why);
}

[[noreturn]] void no_operation(std::string_view sign, const Value& left, const Value& right) {
  refuse_undefined(left);
  refuse_undefined(right);
  fail("unsupported operand type(s) for " + std::string(sign) + ": '" + std::string(type_name(left)) + "' and '" +
       std::string(type_name(right)) + "'");
}

struct Numbers {
  bool are_ints = false;
  Int i = 0, j = 0;
  double x = 0, y = 0;
};

Numbers numbers(std::string_view sign, const Value& left, const Value& right) {
  std::optional<double> x = left.number(), y = right.number();
  if (!x || !y) no_operation(sign, left, right);
  std::optional<Int> i = left.integer(), j = right.integer();
  return {i && j, i.value_or(0), j.value_or(0), *x, *y};
}

Text add_texts(Budget& budget, const Text& left, const Text& right) {
  if (!left.is_markup() && !right.is_markup()) return concat(budget, left, right);
  const Text& a = left.is_markup() ? left : escaped(budget, left);
  const Text& b = right.is_markup() ? right : escaped(budget, right);
  return concat(budget, a, b).as_markup();
}

bool is_list(const Sequence* s) { return s != nullptr && s->kind == SequenceKind::list; }

double float_floor_divide(double x, double y) {
  double rest = std::fmod(x, y), result = (x - rest) / y;
  if (rest != 0 && (y < 0) != (rest < 0)) result -= 1;
  if (result == 0) return std::copysign(0.0, x / y);
  double whole = std::floor(result);
  return result - whole > 0.5 ? whole + 1 : whole;
}

double float_modulo(double x, double y) {
  double rest = std::fmod(x, y);
  if (rest == 0) return std::copysign(0.0, y);
  return (y < 0) != (rest < 0) ? rest + y : rest;
}

Int int_power(Int base, Int exponent) {
  if (exponent > 127 && (base > 1 || base < -1)) checked(true, 0);
  if (base == 0 || base == 1) return exponent == 0 ? 1 : base;
  if (base == -1) return exponent % 2 == 0 ? 1 : -1;
  Int result = 1;
  for (Int i = 0; i < exponent; ++i) {
    bool overflows = __builtin_mul_overflow(result, base, &result);
    checked(overflows, result);
  }
  return result;
}

// A slice as Python's slice.indices() settles it.
struct Range {
  Int start = 0, stop = 0, step = 1;
  Int size() const {
    if (step > 0) return stop > start ? (stop - start - 1) / step + 1 : 0;
    return stop < start ? (start - stop - 1) / -step + 1 : 0;
  }
};

Range settle(Int length, const Value& start, const Value& stop, const Value& step) {
  auto given = [](const Value& value) { return !value.is<Missing>() && !value.is<None>(); };
  auto index = [](const Value& value) {
    refuse_undefined(value);
    std::optional<Int> i = value.integer();
    if (!i) fail("slice indices must be integers or None");
    return *i;
  };
  Range range;
  if (given(step)) range.step = index(step);
  if (range.step == 0) fail("slice step cannot be zero");
  Int low = range.step > 0 ? 0 : -1, high = range.step > 0 ? length : length - 1;
  auto clamp = [&](Int i) { return std::clamp<Int>(i < 0 ? i + length : i, low, high); };
  range.start = given(start) ? clamp(index(start)) : (range.step > 0 ? low : high);
  range.stop = given(stop) ? clamp(index(stop)) : (range.step > 0 ? high : low);
  // Steps longer than the whole say no more than that there is one element.
  range.step = std::clamp<Int>(range.step, -length - 1, length + 1);
  return range;
}

Value slice_text(Budget& budget, const Text& text, const Value& start, const Value& stop, const Value& step) {
  std::string_view view = text.view();
  budget.charge(view.size() / 8);
  Range range = settle(static_cast<Int>(count_code_points(view)), start, stop, step);
  if (range.size() == 0) return Text().as_markup(text.is_markup());
  if (range.step == 1) {
    size_t begin = offset_of(view, static_cast<size_t>(range.start));
    size_t length = offset_of(view.substr(begin), static_cast<size_t>(range.stop - range.start));
    return text.slice(begin, begin + length);
  }
  std::vector<size_t> offsets;
  budget.charge(view.size() * sizeof(size_t));
  for (size_t at = 0; at < view.size(); at += code_point_at(view, at).length) offsets.push_back(at);
  offsets.push_back(view.size());
  TextBuilder builder(budget);
  Int at = range.start;
  for (Int i = 0; i < range.size(); ++i, at += range.step)
    builder.append(text.slice(offsets[static_cast<size_t>(at)], offsets[static_cast<size_t>(at) + 1]));
  return builder.finish().as_markup(text.is_markup());
}

Value slice_sequence(Budget& budget, const Sequence& s, const Value& start, const Value& stop, const Value& step) {
  Range range = settle(static_cast<Int>(s.items.size()), start, stop, step);
  budget.charge(static_cast<uint64_t>(range.size()) * Budget::kElement);
  std::vector<Value> items;
  items.reserve(static_cast<size_t>(range.size()));
  Int at = range.start;
  for (Int i = 0; i < range.size(); ++i, at += range.step) items.push_back(s.items[static_cast<size_t>(at)]);
  SequenceKind kind = s.kind == SequenceKind::group ? SequenceKind::tuple : s.kind;
  Value result = make_sequence(kind, std::move(items), s.from_user);
  if (kind != SequenceKind::range) return result;
  auto part = std::make_shared<Sequence>(*result.sequence());
  part->start = s.start + range.start * s.step;
  part->step = s.step * range.step;
  part->stop = s.start + range.stop * s.step;
  return SequencePtr(std::move(part));
}

}  // namespace

Int checked(bool overflows, Int value) {
  if (overflows) fail("integers beyond 127 bits are not supported");
  return value;
}

Text escaped(Budget& budget, const Text& text) {
  TextBuilder builder(budget);
  text.for_each_run([&](std::string_view run, bool from_user) {
    size_t begin = 0;
    for (size_t i = 0; i < run.size(); ++i) {
      std::string_view name = run[i] == '&'    ? "&amp;"
                              : run[i] == '<'  ? "&lt;"
                              : run[i] == '>'  ? "&gt;"
                              : run[i] == '\'' ? "&#39;"
                              : run[i] == '"'  ? "&#34;"
                                               : "";
      if (name.empty()) continue;
      builder.append(run.substr(begin, i - begin), from_user);
      builder.append(name, from_user);
      begin = i + 1;
    }
    builder.append(run.substr(begin), from_user);
  });
  return builder.finish().as_markup();
}

Value add(Machine& machine, const Value& left, const Value& right) {
  Budget& budget = machine.budget();
  if (left.text() != nullptr && right.text() != nullptr) return add_texts(budget, *left.text(), *right.text());
  const Sequence *s = left.sequence(), *t = right.sequence();
  if ((is_list(s) && is_list(t)) || (s != nullptr && t != nullptr && s->is_tuple() && t->is_tuple())) {
    budget.charge((s->items.size() + t->items.size()) * Budget::kElement);
    std::vector<Value> items = s->items;
    items.insert(items.end(), t->items.begin(), t->items.end());
    return make_sequence(is_list(s) ? SequenceKind::list : SequenceKind::tuple, std::move(items),
                         s->from_user && t->from_user);
  }
  if (left.text() != nullptr && !right.is<Undefined>())
    fail("can only concatenate str (not \"" + std::string(type_name(right)) + "\") to str");
  Numbers n = numbers("+", left, right);
  if (!n.are_ints) return n.x + n.y;
  Int sum = 0;
  bool overflows = __builtin_add_overflow(n.i, n.j, &sum);
  return checked(overflows, sum);
}

Value subtract(const Value& left, const Value& right) {
  Numbers n = numbers("-", left, right);
  if (!n.are_ints) return n.x - n.y;
  Int difference = 0;
  bool overflows = __builtin_sub_overflow(n.i, n.j, &difference);
  return checked(overflows, difference);
}

Value repeated(Machine& machine, const Text& text, Int times) {
  if (times <= 0 || text.empty()) return Text().as_markup(text.is_markup());
  if (times > static_cast<Int>(Budget::kMaxText)) fail("A text in the chat template grows beyond 16 MiB.");
  TextBuilder builder(machine.budget());
  for (Int i = 0; i < times; ++i) builder.append(text);
  return builder.finish().as_markup(text.is_markup());
}

Value multiply(Machine& machine, const Value& left, const Value& right) {
  const Value& counted = left.integer() ? right : left;
  const Value& count = left.integer() ? left : right;
  std::optional<Int> times = count.integer();
  if (times && counted.text() != nullptr) return repeated(machine, *counted.text(), *times);
  if (const Sequence* s = counted.sequence(); times && s != nullptr && (is_list(s) || s->is_tuple())) {
    std::vector<Value> items;
    for (Int i = 0; i < *times && !s->items.empty(); ++i) {
      machine.budget().charge(s->items.size() * Budget::kElement);
      items.insert(items.end(), s->items.begin(), s->items.end());
    }
    return make_sequence(is_list(s) ? SequenceKind::list : SequenceKind::tuple, std::move(items), s->from_user);
  }
  Numbers n = numbers("*", left, right);
  if (!n.are_ints) return n.x * n.y;
  Int product = 0;
  bool overflows = __builtin_mul_overflow(n.i, n.j, &product);
  return checked(overflows, product);
}

Value divide(const Value& left, const Value& right) {
  Numbers n = numbers("/", left, right);
  if (n.y == 0) fail("division by zero");
  return n.x / n.y;
}

Value floor_divide(const Value& left, const Value& right) {
  Numbers n = numbers("//", left, right);
  if (n.y == 0) fail("division by zero");
  if (!n.are_ints) return float_floor_divide(n.x, n.y);
  if (n.j == -1) return negative(n.i);
  Int quotient = n.i / n.j;
  return n.i % n.j != 0 && (n.i < 0) != (n.j < 0) ? quotient - 1 : quotient;
}

Value modulo(Machine& machine, const Value& left, const Value& right) {
  if (const Text* text = left.text()) return format_percent(machine, *text, right);
  Numbers n = numbers("%", left, right);
  if (n.y == 0) fail("division by zero");
  if (!n.are_ints) return float_modulo(n.x, n.y);
  if (n.j == -1) return 0;
  Int rest = n.i % n.j;
  return rest != 0 && (rest < 0) != (n.j < 0) ? rest + n.j : rest;
}

Value power(const Value& left, const Value& right) {
  Numbers n = numbers("**", left, right);
  if (n.are_ints && n.j >= 0) return int_power(n.i, n.j);
  if (n.x == 0 && n.y < 0) fail("0 cannot be raised to a negative power");
  if (n.x < 0 && n.y != std::floor(n.y)) fail("complex numbers are not supported");
  double result = std::pow(n.x, n.y);
  if (std::isinf(result) && std::isfinite(n.x) && std::isfinite(n.y)) fail("the result of a power is too large");
  return result;
}

Value negative(const Value& value) {
  if (const double* number = value.get<double>()) return -*number;
  std::optional<Int> i = value.integer();
  refuse_undefined(value);
  if (!i) fail("bad operand type for unary -: '" + std::string(type_name(value)) + "'");
  Int result = 0;
  bool overflows = __builtin_sub_overflow(Int(0), *i, &result);
  return checked(overflows, result);
}

Value positive(const Value& value) {
  refuse_undefined(value);
  if (value.get<double>() != nullptr) return value;
  std::optional<Int> i = value.integer();
  if (!i) fail("bad operand type for unary +: '" + std::string(type_name(value)) + "'");
  return *i;
}

bool contains(Machine& machine, const Value& container, const Value& element) {
  Budget& budget = machine.budget();
  if (const Text* text = container.text()) {
    if (element.text() == nullptr) {
      refuse_undefined(element);
      fail("'in <string>' requires string as left operand, not " + std::string(type_name(element)));
    }
    budget.charge(text->size() / 4);
    return text->view().find(element.text()->view()) != std::string_view::npos;
  }
  if (const Dict* dict = container.dict()) return dict->find(budget, element) != nullptr;
  if (container.sequence() != nullptr || container.is<Undefined>()) {
    Iteration iteration(budget, container);
    for (Value value; iteration.next(value);)
      if (equal(budget, value, element)) return true;
    return false;
  }
  fail("argument of type '" + std::string(type_name(container)) + "' is not iterable");
}

Value slice(Machine& machine, const Value& object, const Value& start, const Value& stop, const Value& step) {
  refuse_undefined(object);
  if (const Text* text = object.text()) return slice_text(machine.budget(), *text, start, stop, step);
  const Sequence* s = object.sequence();
  if (s == nullptr || !s->is_indexed()) fail("'" + std::string(type_name(object)) + "' object can't be sliced");
  return slice_sequence(machine.budget(), *s, start, stop, step);
}

Value subscript(Machine& machine, const Value& object, const Value& key) {
  if (const Dict* dict = object.dict()) {
    if (key.dict() != nullptr || is_list(key.sequence())) return {};
    const Value* found = dict->find(machine.budget(), key);
    return found != nullptr ? *found : Value();
  }
  std::optional<Int> index = key.integer();
  if (!index) return {};
  if (const Sequence* s = object.sequence(); s != nullptr && s->is_indexed()) {
    Int at = *index < 0 ? *index + static_cast<Int>(s->items.size()) : *index;
    return at >= 0 && at < static_cast<Int>(s->items.size()) ? s->items[static_cast<size_t>(at)] : Value();
  }
  const Text* text = object.text();
  if (text == nullptr) return {};
  std::string_view view = text->view();
  machine.budget().charge(view.size() / 8);
  Int length = static_cast<Int>(count_code_points(view)), at = *index < 0 ? *index + length : *index;
  if (at < 0 || at >= length) return {};
  size_t begin = offset_of(view, static_cast<size_t>(at));
  return text->slice(begin, begin + code_point_at(view, begin).length);
}

}  // namespace unisono::text::jinja

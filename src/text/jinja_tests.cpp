// Jinja's tests: what may stand after `is`.
#include <unordered_map>

#include "text/jinja_builtins.h"
#include "text/jinja_eval.h"
#include "text/jinja_operators.h"
#include "text/jinja_unicode.h"

namespace unisono::text::jinja {

namespace {

using Tests = std::unordered_map<std::string_view, Test>;

Value only_argument(Args args) { return Params(std::move(args), "a test", {"other"}, 1)[0]; }

void no_arguments(Args args) { Params(std::move(args), "a test without arguments", {}); }

// Tests that look at the value only.
template <bool (*holds)(const Value&)>
bool of_value(Machine&, const Value& input, Args args) {
  no_arguments(std::move(args));
  return holds(input);
}

bool is_defined(const Value& v) { return !v.is<Undefined>(); }
bool is_undefined(const Value& v) { return v.is<Undefined>(); }
bool is_none(const Value& v) { return v.is<None>(); }
bool is_boolean(const Value& v) { return v.is<bool>(); }
bool is_true(const Value& v) { return v.is<bool>() && truth(v); }
bool is_false(const Value& v) { return v.is<bool>() && !truth(v); }
bool is_integer(const Value& v) { return v.is<Int>(); }
bool is_float(const Value& v) { return v.is<double>(); }
bool is_number(const Value& v) { return v.number().has_value(); }
bool is_string(const Value& v) { return v.text() != nullptr; }
bool is_mapping(const Value& v) { return v.dict() != nullptr; }
bool is_sequence(const Value& v) {
  return v.text() != nullptr || v.dict() != nullptr || v.is<Undefined>() ||
         (v.sequence() != nullptr && v.sequence()->is_indexed());
}
bool is_callable(const Value& v) { return v.is<Undefined>() || (v.object() != nullptr && v.object()->is_callable()); }
bool is_escaped(const Value& v) { return v.text() != nullptr && v.text()->is_markup(); }
bool is_iterable(const Value& v) {
  return Iteration::is_iterable(v) || (v.object() != nullptr && v.object()->type_name() == "LoopContext");
}

template <Int rest>
bool has_rest(Machine& machine, const Value& input, Args args) {
  no_arguments(std::move(args));
  return equal(machine.budget(), modulo(machine, input, 2), rest);
}

bool is_divisible(Machine& machine, const Value& input, Args args) {
  Value by = Params(std::move(args), "divisibleby", {"num"}, 1)[0];
  return equal(machine.budget(), modulo(machine, input, by), 0);
}

template <bool upper_case>
bool has_case(Machine& machine, const Value& input, Args args) {
  no_arguments(std::move(args));
  Text text = machine.print(input);
  machine.budget().charge(text.size());
  std::string_view view = text.view();
  bool any = false;
  for (size_t i = 0; i < view.size();) {
    CodePoint c = code_point_at(view, i);
    if (is_cased(c.value)) {
      if (upper_case ? !is_upper(c.value) : !is_lower(c.value)) return false;
      any = true;
    }
    i += c.length;
  }
  return any;
}

bool is_equal(Machine& machine, const Value& input, Args args) {
  return equal(machine.budget(), input, only_argument(std::move(args)));
}
bool is_not_equal(Machine& machine, const Value& input, Args args) { return !is_equal(machine, input, std::move(args)); }
bool is_less(Machine& machine, const Value& input, Args args) {
  return less(machine.budget(), input, only_argument(std::move(args)), "<");
}
bool is_greater(Machine& machine, const Value& input, Args args) {
  return less(machine.budget(), only_argument(std::move(args)), input, ">");
}
bool is_less_equal(Machine& machine, const Value& input, Args args) {
  Value other = only_argument(std::move(args));
  return less(machine.budget(), input, other, "<=") || equal(machine.budget(), input, other);
}
bool is_greater_equal(Machine& machine, const Value& input, Args args) {
  Value other = only_argument(std::move(args));
  return less(machine.budget(), other, input, ">=") || equal(machine.budget(), input, other);
}
bool is_same(Machine&, const Value& input, Args args) { return input.same(only_argument(std::move(args))); }
bool is_in(Machine& machine, const Value& input, Args args) {
  return contains(machine, only_argument(std::move(args)), input);
}
bool is_filter(Machine&, const Value& input, Args args) {
  no_arguments(std::move(args));
  return input.text() != nullptr && find_filter(input.text()->view()) != nullptr;
}
bool is_test(Machine&, const Value& input, Args args) {
  no_arguments(std::move(args));
  return input.text() != nullptr && find_test(input.text()->view()) != nullptr;
}

const Tests& tests() {
  static const Tests tests = {{"defined", of_value<is_defined>},
                              {"undefined", of_value<is_undefined>},
                              {"none", of_value<is_none>},
                              {"boolean", of_value<is_boolean>},
                              {"true", of_value<is_true>},
                              {"false", of_value<is_false>},
                              {"integer", of_value<is_integer>},
                              {"float", of_value<is_float>},
                              {"number", of_value<is_number>},
                              {"string", of_value<is_string>},
                              {"mapping", of_value<is_mapping>},
                              {"sequence", of_value<is_sequence>},
                              {"iterable", of_value<is_iterable>},
                              {"callable", of_value<is_callable>},
                              {"escaped", of_value<is_escaped>},
                              {"odd", has_rest<1>},
                              {"even", has_rest<0>},
                              {"divisibleby", is_divisible},
                              {"lower", has_case<false>},
                              {"upper", has_case<true>},
                              {"eq", is_equal},
                              {"equalto", is_equal},
                              {"==", is_equal},
                              {"ne", is_not_equal},
                              {"!=", is_not_equal},
                              {"lt", is_less},
                              {"lessthan", is_less},
                              {"<", is_less},
                              {"gt", is_greater},
                              {"greaterthan", is_greater},
                              {">", is_greater},
                              {"le", is_less_equal},
                              {"<=", is_less_equal},
                              {"ge", is_greater_equal},
                              {">=", is_greater_equal},
                              {"sameas", is_same},
                              {"in", is_in},
                              {"filter", is_filter},
                              {"test", is_test}};
  return tests;
}

}  // namespace

const Test* find_test(std::string_view name) {
  auto entry = tests().find(name);
  return entry == tests().end() ? nullptr : &entry->second;
}

}  // namespace unisono::text::jinja

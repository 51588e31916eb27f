// How the machine evaluates expressions: small functions, so that deep expressions need little of the stack.
#include "text/jinja_eval.h"
#include "text/jinja_operators.h"
#include "text/jinja_print.h"

namespace unisono::text::jinja {

Value Machine::eval(const Expr& expr) {
  Deeper deeper(*this);
  switch (expr.op) {
    case Op::constant: return expr.constant;
    case Op::name:
    case Op::member_slot: return eval_name(expr);
    case Op::list:
    case Op::tuple: return eval_sequence(expr);
    case Op::dict: return eval_dict(expr);
    case Op::attribute: return eval_attribute(expr);
    case Op::item: return eval_item(expr);
    case Op::slice: return eval_slice(expr);
    case Op::call: return eval_call(expr);
    case Op::filter: return eval_filter(expr);
    case Op::test: return eval_test(expr);
    case Op::conditional: return eval_conditional(expr);
    case Op::logical_and:
    case Op::logical_or: {
      Value left = eval(*expr.parts[0]);
      return truth(left) == (expr.op == Op::logical_or) ? std::move(left) : eval(*expr.parts[1]);
    }
    case Op::logical_not: return !truth(eval(*expr.parts[0]));
    case Op::compare: return eval_compare(expr);
    case Op::concat: return eval_concat(expr);
    case Op::negative: return negative(eval(*expr.parts[0]));
    case Op::positive: return positive(eval(*expr.parts[0]));
    case Op::captured: return captured_.back();
    default: return eval_binary(expr);
  }
}

Value Machine::eval_name(const Expr& expr) {
  const Value& value = slot(expr.slot);
  if (!value.is<Missing>()) return value;
  budget_.charge(Budget::kObject + expr.name.size());
  return undefined("'" + expr.name + "' is undefined");
}

Value Machine::eval_sequence(const Expr& expr) {
  budget_.charge(Budget::kObject + expr.parts.size() * Budget::kElement);
  std::vector<Value> items;
  items.reserve(expr.parts.size());
  for (const ExprPtr& part : expr.parts) items.push_back(eval(*part));
  return make_sequence(expr.op == Op::list ? SequenceKind::list : SequenceKind::tuple, std::move(items));
}

Value Machine::eval_dict(const Expr& expr) {
  budget_.charge(Budget::kObject + expr.parts.size() * Budget::kElement);
  Dict dict;
  for (size_t i = 0; i < expr.parts.size(); i += 2) {
    Value key = eval(*expr.parts[i]);
    dict.set(budget_, std::move(key), eval(*expr.parts[i + 1]));
  }
  return make_dict(std::move(dict));
}

Value Machine::eval_conditional(const Expr& expr) {
  if (truth(eval(*expr.parts[0]))) return eval(*expr.parts[1]);
  if (expr.parts[2] != nullptr) return eval(*expr.parts[2]);
  return undefined("the inline if-expression on line " + std::to_string(expr.line) +
                   " evaluated to false and no else section was defined.");
}

Value Machine::eval_attribute(const Expr& expr) {
  Value object = eval(*expr.parts[0]);
  line_ = expr.line;
  return attribute(object, expr.attribute);
}

Value Machine::eval_item(const Expr& expr) {
  Value object = eval(*expr.parts[0]);
  Value key = eval(*expr.parts[1]);
  line_ = expr.line;
  return item(object, key);
}

Value Machine::eval_slice(const Expr& expr) {
  Value parts[4];
  for (size_t i = 0; i < 4; ++i)
    if (expr.parts[i] != nullptr) parts[i] = eval(*expr.parts[i]);
  line_ = expr.line;
  return slice(*this, parts[0], parts[1], parts[2], parts[3]);
}

Value Machine::eval_compare(const Expr& expr) {
  auto holds = [this](Comparison comparison, const Value& left, const Value& right) {
    switch (comparison) {
      case Comparison::equal: return equal(budget_, left, right);
      case Comparison::not_equal: return !equal(budget_, left, right);
      case Comparison::less: return less(budget_, left, right, "<");
      case Comparison::less_equal: return less(budget_, left, right, "<=") || equal(budget_, left, right);
      case Comparison::greater: return less(budget_, right, left, ">");
      case Comparison::greater_equal: return less(budget_, right, left, ">=") || equal(budget_, left, right);
      case Comparison::in: return contains(*this, right, left);
      case Comparison::not_in: return !contains(*this, right, left);
    }
    return false;
  };
  Value left = eval(*expr.parts[0]);
  for (size_t i = 0; i < expr.compares.size(); ++i) {
    Value right = eval(*expr.parts[i + 1]);
    line_ = expr.line;
    if (!holds(expr.compares[i], left, right)) return false;
    left = std::move(right);
  }
  return true;
}

Value Machine::eval_concat(const Expr& expr) {
  Text result = print(eval(*expr.parts[0])).as_markup(false);
  for (size_t i = 1; i < expr.parts.size(); ++i) result = concat(budget_, result, print(eval(*expr.parts[i])));
  return result;
}

Value Machine::eval_binary(const Expr& expr) {
  Value left = eval(*expr.parts[0]);
  Value right = eval(*expr.parts[1]);
  line_ = expr.line;
  switch (expr.op) {
    case Op::add: return add(*this, left, right);
    case Op::subtract: return subtract(left, right);
    case Op::multiply: return multiply(*this, left, right);
    case Op::divide: return divide(left, right);
    case Op::floor_divide: return floor_divide(left, right);
    case Op::modulo: return modulo(*this, left, right);
    case Op::power: return power(left, right);
    default: check(false, "an expression of no known kind"); return {};
  }
}

Args Machine::eval_args(const CallArgs& args) {
  Args result;
  budget_.charge((args.positional.size() + args.named.size()) * Budget::kElement);
  for (const ExprPtr& arg : args.positional) result.positional.push_back(eval(*arg));
  for (const auto& [name, arg] : args.named) result.named.emplace_back(name, eval(*arg));
  if (args.star != nullptr)
    for (Value& value : elements(eval(*args.star))) result.positional.push_back(std::move(value));
  if (args.double_star == nullptr) return result;
  Value names = eval(*args.double_star);
  if (names.dict() == nullptr) fail("what follows '**' must be a dict");
  for (const auto& [key, value] : names.dict()->entries) {
    if (key.text() == nullptr) fail("keywords must be strings");
    budget_.charge(Budget::kElement + key.text()->size());
    for (const auto& [name, other] : args.named)
      if (name == key.text()->view()) fail("the argument '" + name + "' is given twice");
    result.named.emplace_back(key.text()->view(), value);
  }
  return result;
}

Value Machine::eval_call(const Expr& expr, const Value* caller) {
  Value callee = eval(*expr.parts[0]);
  Args args = eval_args(*expr.args);
  if (caller != nullptr) args.named.emplace_back("caller", *caller);
  line_ = expr.line;
  return call(callee, std::move(args));
}

Value Machine::eval_filter(const Expr& expr) {
  Value input = eval(*expr.parts[0]);
  Args args = eval_args(*expr.args);
  line_ = expr.line;
  return filter(expr.attribute, input, std::move(args));
}

Value Machine::eval_test(const Expr& expr) {
  Value input = eval(*expr.parts[0]);
  Args args = eval_args(*expr.args);
  line_ = expr.line;
  return test(expr.attribute, input, std::move(args));
}

}  // namespace unisono::text::jinja

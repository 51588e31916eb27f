// What Python and Jinja bring along: filters, tests, methods, global functions. Each is found by name and takes the
// arguments of a call as they come.
#pragma once

#include <initializer_list>
#include <string_view>

#include "text/jinja_value.h"

namespace unisono::text::jinja {

using Filter = Value (*)(Machine& machine, const Value& input, Args args);
using Test = bool (*)(Machine& machine, const Value& input, Args args);

const Filter* find_filter(std::string_view name);   // null: there is none
bool is_unsupported_filter(std::string_view name);  // Jinja has it, the subset doesn't
const Test* find_test(std::string_view name);       // null: there is none
Value global_function(std::string_view name);       // Missing: there is none; raise_exception, range, namespace ...
// The method (or other attribute) of a value that is no Object; nothing when Python's type has none of this name.
std::optional<Value> find_method(Machine& machine, const Value& self, std::string_view name);

// The arguments of one call by the names of the parameters. Refused: too many, unknown or missing ones.
class Params {
 public:
  // The first `required` have no default. callee is for sentences.
  Params(Args args, std::string_view callee, std::initializer_list<std::string_view> names, size_t required = 0);

  bool has(size_t i) const { return !values_[i].is<Missing>(); }
  bool has_value(size_t i) const { return has(i) && !values_[i].is<None>(); }
  const Value& operator[](size_t i) const { return values_[i]; }
  Value take_or(size_t i, Value fallback) const { return has(i) ? values_[i] : std::move(fallback); }
  bool truth(size_t i, bool fallback) const { return has(i) ? jinja::truth(values_[i]) : fallback; }
  Int integer(size_t i, Int fallback) const;  // Refused: what is no int
  Text text(size_t i) const;                  // Refused: what is no str

 private:
  std::string_view callee_;
  std::vector<Value> values_{};
};

}  // namespace unisono::text::jinja

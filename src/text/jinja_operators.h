// Python's operators on values. Every one refuses what Python refuses, and charges before it makes something large.
#pragma once

#include "text/jinja_value.h"

namespace unisono::text::jinja {

class Machine;

Value add(Machine& machine, const Value& left, const Value& right);
Value subtract(const Value& left, const Value& right);
Value multiply(Machine& machine, const Value& left, const Value& right);
Value divide(const Value& left, const Value& right);
Value floor_divide(const Value& left, const Value& right);
Value modulo(Machine& machine, const Value& left, const Value& right);  // of a str: formatting
Value power(const Value& left, const Value& right);
Value negative(const Value& value);
Value positive(const Value& value);

bool contains(Machine& machine, const Value& container, const Value& element);
// object[start:stop:step]; Missing and None leave one out.
Value slice(Machine& machine, const Value& object, const Value& start, const Value& stop, const Value& step);
// object[key]; Missing where there is nothing (then Jinja looks for an attribute).
Value subscript(Machine& machine, const Value& object, const Value& key);

Int checked(bool overflows, Int value);  // Refused: overflows
// HTML's special characters replaced; markup.
Text escaped(Budget& budget, const Text& text);
Value repeated(Machine& machine, const Text& text, Int times);

}  // namespace unisono::text::jinja

// A JSON Schema as a formula: keywords are atoms, joined by and, or, not and references. Atoms are exact sets of JSON
// values; an atom about one kind of value holds for every other kind, as keywords do. Equal formulas have equal ids.
#pragma once

#include <cstdint>
#include <deque>
#include <string>
#include <unordered_map>
#include <vector>

#include "grammar/number.h"
#include "grammar/regex.h"

namespace unisono::grammar {

using FormulaId = uint32_t;

// Kinds of JSON values, as bits. True and false are kinds of their own: nothing then needs a set of booleans.
enum Kind : uint8_t {
  kNull = 1,
  kFalse = 2,
  kTrue = 4,
  kNumber = 8,
  kString = 16,
  kArray = 32,
  kObject = 64,
  kAnyKind = 127
};

struct Formula {
  enum class Op : uint8_t {
    never,
    always,
    all,        // parts
    any,        // parts
    one,        // exactly one of parts
    negation,   // parts[0]
    reference,  // n: the reader's number of it
    types,      // n: kinds; integer: of numbers only the integers
    scalars,    // a value of these: n kinds of null, false, true; numbers; texts
    number_from,
    number_above,
    number_to,
    number_below,
    multiple_of,  // numbers[0]
    text,         // regex
    item,         // n: index; parts[0]
    items_from,   // n: first index; parts[0]
    min_items,
    max_items,  // n
    contains,   // parts[0], at least n, at most m
    unique_items,
    property,  // texts[0]; parts[0]: where it is there
    required,  // texts[0]
    min_properties,
    max_properties,    // n
    pattern_property,  // regex, parts[0]
    other_properties,  // of names but texts that don't match regex (kNothing: none do); parts[0]
    property_names,    // parts[0]
  };
  Op op = Op::always;
  // strict: an integer is written without a fraction, as draft 4 has it. declared: the property has a place in the order
  // of keys.
  bool integer = false, strict = false, declared = false;
  uint64_t n = 0, m = 0;
  RegexId regex = 0;
  std::vector<FormulaId> parts{};
  std::vector<std::string> texts{};
  std::vector<Decimal> numbers{};
  uint32_t where = 0;  // of the first place it stands at, for errors; no part of its identity
};

class FormulaTable {
 public:
  static constexpr FormulaId kNever = 0, kAlways = 1;

  FormulaTable();
  const Formula& at(FormulaId id) const { return formulas_[id]; }
  FormulaId add(Formula formula);
  FormulaId all(std::vector<FormulaId> parts);
  FormulaId any(std::vector<FormulaId> parts);
  FormulaId negate(FormulaId part);
  size_t size() const { return formulas_.size(); }
  bool exhausted() const { return formulas_.size() > kMaxFormulas; }

 private:
  static constexpr size_t kMaxFormulas = 300'000;
  FormulaId join(Formula::Op op, std::vector<FormulaId> parts, FormulaId neutral, FormulaId absorbing);

  std::deque<Formula> formulas_{};
  std::unordered_multimap<uint64_t, FormulaId> index_{};
};

}  // namespace unisono::grammar

#include "grammar/schema_formula.h"

#include <algorithm>

namespace unisono::grammar {

namespace {

uint64_t mix(uint64_t h, uint64_t v) {
  h = (h ^ v) * 0x9E3779B97F4A7C15ull;
  return h ^ (h >> 29);
}

uint64_t hash_of(const Formula& f) {
  uint64_t h = mix(mix(mix(uint64_t(f.op) * 8 + f.strict * 4 + f.integer * 2 + f.declared, f.n), f.m), f.regex);
  for (FormulaId p : f.parts) h = mix(h, p);
  for (const std::string& t : f.texts) h = mix(h, std::hash<std::string>{}(t));
  return mix(h, f.numbers.size());
}

bool same(const Formula& a, const Formula& b) {
  auto equal = [](const Decimal& x, const Decimal& y) { return x.compare(y) == 0; };
  return a.op == b.op && a.integer == b.integer && a.strict == b.strict && a.declared == b.declared && a.n == b.n &&
         a.m == b.m && a.regex == b.regex && a.parts == b.parts && a.texts == b.texts &&
         std::equal(a.numbers.begin(), a.numbers.end(), b.numbers.begin(), b.numbers.end(), equal);
}

}  // namespace

FormulaTable::FormulaTable() {
  Formula never;
  never.op = Formula::Op::never;
  add(std::move(never));
  add(Formula{});
}

FormulaId FormulaTable::add(Formula formula) {
  const uint64_t h = hash_of(formula);
  auto [from, to] = index_.equal_range(h);
  for (auto it = from; it != to; ++it)
    if (same(formulas_[it->second], formula)) return it->second;
  const auto id = FormulaId(formulas_.size());
  formulas_.push_back(std::move(formula));
  index_.emplace(h, id);
  return id;
}

FormulaId FormulaTable::join(Formula::Op op, std::vector<FormulaId> parts, FormulaId neutral, FormulaId absorbing) {
  Formula out;
  out.op = op;
  auto take = [&](FormulaId part) {
    if (part != neutral && std::find(out.parts.begin(), out.parts.end(), part) == out.parts.end())
      out.parts.push_back(part);
  };
  // Long lists come from one schema and hold each part once.
  const bool search = parts.size() < 64;
  for (FormulaId part : parts) {
    if (part == absorbing) return absorbing;
    if (formulas_[part].op == op)
      for (FormulaId inner : formulas_[part].parts) search ? take(inner) : out.parts.push_back(inner);
    else if (search)
      take(part);
    else if (part != neutral)
      out.parts.push_back(part);
  }
  if (out.parts.empty()) return neutral;
  return out.parts.size() == 1 ? out.parts[0] : add(std::move(out));
}

FormulaId FormulaTable::all(std::vector<FormulaId> parts) {
  return join(Formula::Op::all, std::move(parts), kAlways, kNever);
}
FormulaId FormulaTable::any(std::vector<FormulaId> parts) {
  return join(Formula::Op::any, std::move(parts), kNever, kAlways);
}

FormulaId FormulaTable::negate(FormulaId part) {
  if (part == kNever) return kAlways;
  if (part == kAlways) return kNever;
  if (formulas_[part].op == Formula::Op::negation) return formulas_[part].parts[0];
  Formula out;
  out.op = Formula::Op::negation;
  out.parts = {part};
  return add(std::move(out));
}

}  // namespace unisono::grammar

#include "grammar/schema_normal.h"

#include <algorithm>

#include "base/check.h"

namespace unisono::grammar {

namespace {

using Op = Formula::Op;
constexpr size_t kMaxShapes = 1000, kMaxWork = 450'000, kMaxPrefix = 2000, kMaxCells = 24, kMaxSome = 3;

constexpr const char* kTooManySteps = "more than eleven negated multipleOf of one number can't be enforced";

bool about(Op op, Kind kind) {
  switch (op) {
    case Op::number_from:
    case Op::number_above:
    case Op::number_to:
    case Op::number_below:
    case Op::multiple_of: return kind == kNumber;
    case Op::text: return kind == kString;
    case Op::item:
    case Op::items_from:
    case Op::min_items:
    case Op::max_items:
    case Op::contains:
    case Op::unique_items: return kind == kArray;
    case Op::property:
    case Op::required:
    case Op::min_properties:
    case Op::max_properties:
    case Op::pattern_property:
    case Op::other_properties:
    case Op::property_names: return kind == kObject;
    default: return true;
  }
}

}  // namespace

Normalizer::Properties::Name& Normalizer::Properties::name(const std::string& text) {
  for (Name& n : names)
    if (n.text == text) return n;
  names.push_back({text});
  return names.back();
}

uint8_t Normalizer::kinds(FormulaId id, int depth) {
  auto it = kinds_.find(id);
  if (it != kinds_.end()) return it->second;
  if (depth > 40 || reader_.error()) return kAnyKind;
  const Formula& f = formulas_.at(id);
  uint8_t out = kAnyKind;
  switch (f.op) {
    case Op::never: out = 0; break;
    case Op::types: out = uint8_t(f.n); break;
    case Op::scalars: out = uint8_t(f.n | (f.numbers.empty() ? 0 : kNumber) | (f.texts.empty() ? 0 : kString)); break;
    case Op::all:
      for (FormulaId part : f.parts) out &= kinds(part, depth + 1);
      break;
    case Op::any:
    case Op::one:
      out = 0;
      for (FormulaId part : f.parts) out |= kinds(part, depth + 1);
      break;
    case Op::reference: out = kinds(reader_.target(uint32_t(f.n)), depth + 1); break;
    default: break;
  }
  if (!reader_.error()) kinds_[id] = out;
  return out;
}

const Normal& Normalizer::normal(FormulaId id) {
  auto [it, fresh] = known_.try_emplace(id, kUnderWay);
  if (!fresh) {
    check(it->second != kUnderWay, "a formula's normal form isn't asked for while it is made");
    return normals_[it->second];
  }
  const size_t widened = widened_;
  Normal out;
  const uint8_t possible = kinds(id);
  for (Kind kind : {kNull, kFalse, kTrue, kNumber, kString, kArray, kObject}) {
    if (!(possible & kind) || reader_.error()) continue;
    Shapes shapes(1);
    if (kind == kNumber) shapes[0] = NumberSet{};
    if (kind == kString) shapes[0] = Strings{};
    if (kind == kArray) shapes[0] = Items{};
    if (kind == kObject) shapes[0] = Properties{};
    apply(shapes, id, true, kind);
    if (!reader_.error()) collect(out, std::move(shapes), kind);
  }
  if (pool_.exhausted()) reader_.refuse_here("the schema is too complex");
  known_[id] = uint32_t(normals_.size());
  normals_.push_back(std::move(out));
  // What an error or a widened part touched is no answer to keep.
  if (reader_.error() || widened_ != widened) known_.erase(id);
  return normals_.back();
}

void Normalizer::apply(Shapes& shapes, FormulaId id, bool positive, Kind kind) {
  if (shapes.empty() || reader_.error()) return;
  work_ += shapes.size();
  if (work_ > kMaxWork) return reader_.refuse(formulas_.at(id).where, "the schema is too complex");
  const Formula& f = formulas_.at(id);
  switch (f.op) {
    case Op::never:
    case Op::always:
      if ((f.op == Op::always) != positive) shapes.clear();
      return;
    case Op::all: return positive ? apply_each(shapes, f.parts, true, kind) : apply_some(shapes, f.parts, false, kind);
    case Op::any: return positive ? apply_some(shapes, f.parts, true, kind) : apply_each(shapes, f.parts, false, kind);
    case Op::negation: return positive ? apply_negated(shapes, f.parts[0], kind) : apply(shapes, f.parts[0], true, kind);
    case Op::one: {
      if (auto spelt_out = exactly_one(id)) return apply(shapes, *spelt_out, positive, kind);
      ++widened_;
      if (positive) apply_some(shapes, f.parts, true, kind);
      return;
    }
    case Op::reference: {
      if (active_[f.n]) return reader_.refuse(f.where, "the reference leads back to itself without a value in between");
      const FormulaId target = reader_.target(uint32_t(f.n));
      active_[f.n] = true;
      apply(shapes, target, positive, kind);
      active_[f.n] = false;
      return;
    }
    default: break;
  }
  if (!about(f.op, kind)) {
    if (!positive) shapes.clear();
    return;
  }
  std::erase_if(shapes, [&](Shape& shape) { return !narrow(shape, f, positive, kind); });
}

void Normalizer::apply_each(Shapes& shapes, const std::vector<FormulaId>& parts, bool positive, Kind kind) {
  // Choices last, when there is the least left to copy.
  auto is_choice = [&](FormulaId part) {
    const Op op = formulas_.at(part).op;
    return op == (positive ? Op::any : Op::all) || op == Op::negation || op == Op::one;
  };
  for (FormulaId part : parts)
    if (!is_choice(part)) apply(shapes, part, positive, kind);
  for (FormulaId part : parts)
    if (is_choice(part)) apply(shapes, part, positive, kind);
}

void Normalizer::apply_some(Shapes& shapes, const std::vector<FormulaId>& parts, bool positive, Kind kind) {
  Shapes out;
  size_t weight = 0;
  for (const Shape& shape : shapes) weight += weight_of(shape);
  for (FormulaId part : parts) {
    if (positive && !(kinds(part) & kind)) continue;
    Shapes branch = shapes;
    work_ += weight;
    apply(branch, part, positive, kind);
    // For null, true and false there is nothing but being there.
    if (kind <= kTrue && !branch.empty()) {
      shapes = std::move(branch);
      shapes.resize(1);
      return;
    }
    std::move(branch.begin(), branch.end(), std::back_inserter(out));
    if (out.size() > 4 * parts.size()) drop_implied(out);
    if (out.size() > kMaxShapes)
      return reader_.refuse(formulas_.at(part).where, "the schema has too many alternatives for one value");
  }
  shapes = std::move(out);
}

// What already excludes f stays as it is, instead of falling apart into one alternative for each way to fail f.
void Normalizer::apply_negated(Shapes& shapes, FormulaId f, Kind kind) {
  const Op op = formulas_.at(f).op;
  const bool composite = op == Op::all || op == Op::any || op == Op::one || op == Op::reference || op == Op::negation;
  if (kind <= kTrue || !composite || !(kinds(f) & kind)) return (kinds(f) & kind) ? apply(shapes, f, false, kind) : void();
  if (kind < kArray) return apply(shapes, f, false, kind);
  Shapes out;
  for (Shape& shape : shapes) {
    if (reader_.error()) return;
    work_ += 2 * weight_of(shape);
    Shapes both{shape};
    apply(both, f, true, kind);
    if (reader_.error()) {
      reader_.forgive();
      both = {shape};
    }
    std::erase_if(both, [&](Shape& s) { return empty(s, 1); });
    if (both.empty()) {
      out.push_back(std::move(shape));
      continue;
    }
    Shapes alone{std::move(shape)};
    apply(alone, f, false, kind);
    std::move(alone.begin(), alone.end(), std::back_inserter(out));
    if (out.size() > kMaxShapes)
      return reader_.refuse(formulas_.at(f).where, "the schema has too many alternatives for one value");
  }
  shapes = std::move(out);
  drop_implied(shapes);
}

bool Normalizer::parts_empty(const std::vector<FormulaId>& parts, int depth) {
  if (parts.empty()) return false;
  const bool out = surely_empty(formulas_.all(parts), depth);
  if (!reader_.error()) return out;
  reader_.forgive();
  return false;
}

// Surely; false says nothing.
bool Normalizer::empty(Shape& shape, int depth) {
  if (auto* number = std::get_if<NumberSet>(&shape)) return number->settle(), number->empty();
  if (auto* p = std::get_if<Properties>(&shape)) {
    if (p->min > p->max) return true;
    uint64_t required = 0;
    for (const Properties::Name& name : p->names) {
      if (!name.required) continue;
      ++required;
      std::vector<FormulaId> parts = name.parts;
      for (const Keys& keys : p->each)
        if (covers(keys, name.text)) parts.push_back(keys.part);
      if (parts_empty(parts, depth)) return true;
    }
    return required > p->max;
  }
  if (auto* items = std::get_if<Items>(&shape)) {
    if (items->min > items->max) return true;
    for (const auto& [i, part] : items->at) {
      std::vector<FormulaId> parts;
      for (const auto& [k, other] : items->at)
        if (k == i) parts.push_back(other);
      for (const auto& [from, other] : items->from)
        if (from <= i) parts.push_back(other);
      if (i < items->min && parts_empty(parts, depth)) return true;
    }
    if (items->min == 0) return false;
    std::vector<FormulaId> first;
    for (const auto& [from, other] : items->from)
      if (from < items->min) first.push_back(other);
    return parts_empty(first, depth);
  }
  return false;
}

const Normalizer::Properties::Name* Normalizer::Properties::find(const std::string& text) const {
  for (const Name& n : names)
    if (n.text == text) return &n;
  return nullptr;
}

// What a shape costs to copy and to compare.
size_t Normalizer::weight_of(const Shape& shape) {
  if (const auto* p = std::get_if<Properties>(&shape)) return 4 + p->names.size() + p->each.size() + p->some.size();
  if (const auto* items = std::get_if<Items>(&shape)) return 4 + items->at.size() + items->from.size();
  return 4;
}

// Each condition of `weaker` is one of `stronger`.
bool Normalizer::implied(const Shape& weaker, const Shape& stronger) {
  auto within = [](const auto& few, const auto& many) {
    return std::all_of(few.begin(), few.end(),
                       [&](const auto& x) { return std::find(many.begin(), many.end(), x) != many.end(); });
  };
  if (const auto* a = std::get_if<Properties>(&weaker)) {
    const auto& b = std::get<Properties>(stronger);
    if (a->min > b.min || a->max < b.max || !within(a->each, b.each) || !within(a->some, b.some)) return false;
    for (const Properties::Name& name : a->names) {
      if (!name.required && name.parts.empty()) continue;
      const Properties::Name* other = b.find(name.text);
      if (!other || (name.required && !other->required) || !within(name.parts, other->parts)) return false;
    }
    return true;
  }
  if (const auto* a = std::get_if<Items>(&weaker)) {
    const auto& b = std::get<Items>(stronger);
    return a->min <= b.min && a->max >= b.max && (!a->unique || b.unique) && within(a->at, b.at) &&
           within(a->from, b.from) && within(a->contains, b.contains);
  }
  return false;
}

void Normalizer::drop_implied(Shapes& shapes) {
  if (shapes.size() < 2) return;
  work_ += shapes.size() * shapes.size() / 4;
  std::vector<bool> dropped(shapes.size());
  for (size_t i = 0; i < shapes.size(); ++i)
    for (size_t j = 0; j < shapes.size() && !dropped[i]; ++j)
      if (i != j && !dropped[j] && implied(shapes[j], shapes[i])) dropped[i] = true;
  Shapes out;
  for (size_t i = 0; i < shapes.size(); ++i)
    if (!dropped[i]) out.push_back(std::move(shapes[i]));
  shapes = std::move(out);
}

bool Normalizer::narrow(Shape& shape, const Formula& f, bool positive, Kind kind) {
  if (auto* items = std::get_if<Items>(&shape); items && f.op != Op::types && f.op != Op::scalars)
    return narrow_items(*items, f, positive);
  if (auto* properties = std::get_if<Properties>(&shape); properties && f.op != Op::types && f.op != Op::scalars)
    return narrow_properties(*properties, f, positive);
  return narrow_scalar(shape, f, positive, kind);
}

bool Normalizer::narrow_scalar(Shape& shape, const Formula& f, bool positive, Kind kind) {
  auto* number = std::get_if<NumberSet>(&shape);
  auto* text = std::get_if<Strings>(&shape);
  switch (f.op) {
    case Op::types: {
      const bool has = (f.n & kind) != 0;
      if (number && has && f.integer) {
        if (positive)
          number->integer(f.strict);
        else if (!number->not_multiple_of(Decimal::of(int64_t(1))))
          reader_.refuse(f.where, kTooManySteps);
        return true;
      }
      return has == positive;
    }
    case Op::scalars:
      if (number) {
        if (positive)
          number->only(f.numbers);
        else
          for (const Decimal& value : f.numbers) number->exclude(value);
        return !number->finite() || !number->finite()->empty();
      }
      if (text) {
        if (!positive) {
          std::vector<std::string_view> texts(f.texts.begin(), f.texts.end());
          if (!texts.empty()) text->conditions.push_back(pool_.negate(pool_.any_of(std::move(texts))));
          return true;
        }
        if (!text->only)
          text->only = f.texts;
        else
          std::erase_if(*text->only, [&](const std::string& t) {
            return std::find(f.texts.begin(), f.texts.end(), t) == f.texts.end();
          });
        return !text->only->empty();
      }
      return ((f.n & kind) != 0) == positive;
    case Op::text: text->conditions.push_back(positive ? f.regex : pool_.negate(f.regex)); return true;
    case Op::number_from:
      positive ? number->at_least(f.numbers[0], false) : number->at_most(f.numbers[0], true);
      return true;
    case Op::number_above:
      positive ? number->at_least(f.numbers[0], true) : number->at_most(f.numbers[0], false);
      return true;
    case Op::number_to: positive ? number->at_most(f.numbers[0], false) : number->at_least(f.numbers[0], true); return true;
    case Op::number_below:
      positive ? number->at_most(f.numbers[0], true) : number->at_least(f.numbers[0], false);
      return true;
    case Op::multiple_of:
      if (!positive) {
        if (!number->not_multiple_of(f.numbers[0])) reader_.refuse(f.where, kTooManySteps);
      } else if (!number->multiple_of(f.numbers[0])) {
        reader_.refuse(f.where, "its multiples are too fine or too many to enforce");
      }
      return true;
    default: return false;
  }
}

bool Normalizer::narrow_items(Items& items, const Formula& f, bool positive) {
  switch (f.op) {
    case Op::min_items:
      if (positive)
        items.min = std::max(items.min, f.n);
      else if (f.n == 0)
        return false;
      else
        items.max = std::min(items.max, f.n - 1);
      break;
    case Op::max_items:
      if (positive)
        items.max = std::min(items.max, f.n);
      else
        items.min = std::max(items.min, f.n + 1);
      break;
    case Op::item:
      items.at.emplace_back(f.n, positive ? f.parts[0] : formulas_.negate(f.parts[0]));
      if (!positive) items.min = std::max(items.min, f.n + 1);
      break;
    case Op::items_from:
      if (positive)
        items.from.emplace_back(f.n, f.parts[0]);
      else
        items.contains.push_back({formulas_.negate(f.parts[0]), f.n, 1, kNoLimit, f.where});
      break;
    case Op::contains:
      if (positive) {
        if (f.n > 0 || f.m < kNoLimit) items.contains.push_back({f.parts[0], 0, f.n, f.m, f.where});
      } else if (f.n > 0 && f.m < kNoLimit) {
        reader_.refuse(f.where, "the negation of a count with two ends can't be enforced");
      } else if (f.n > 0) {
        items.contains.push_back({f.parts[0], 0, 0, f.n - 1, f.where});
      } else if (f.m < kNoLimit) {
        items.contains.push_back({f.parts[0], 0, f.m + 1, kNoLimit, f.where});
      } else {
        return false;
      }
      break;
    case Op::unique_items:
      if (!positive) reader_.refuse(f.where, "the negation of uniqueItems can't be enforced");
      items.unique = true;
      items.where = f.where;
      break;
    default: return false;
  }
  return items.min <= items.max;
}

bool Normalizer::narrow_properties(Properties& p, const Formula& f, bool positive) {
  switch (f.op) {
    case Op::property: {
      Properties::Name& name = p.name(f.texts[0]);
      name.declared |= f.declared;
      if (positive ? f.parts[0] != FormulaTable::kAlways : true)
        name.parts.push_back(positive ? f.parts[0] : formulas_.negate(f.parts[0]));
      if (!positive) name.required = true;
      break;
    }
    case Op::required:
      if (positive)
        p.name(f.texts[0]).required = true;
      else
        p.name(f.texts[0]).parts.push_back(FormulaTable::kNever);
      break;
    case Op::min_properties:
      if (positive)
        p.min = std::max(p.min, f.n);
      else if (f.n == 0)
        return false;
      else
        p.max = std::min(p.max, f.n - 1);
      break;
    case Op::max_properties:
      if (positive)
        p.max = std::min(p.max, f.n);
      else
        p.min = std::max(p.min, f.n + 1);
      break;
    case Op::pattern_property:
    case Op::other_properties: {
      Keys keys;
      keys.matching = f.op == Op::pattern_property ? f.regex : pool_.negate(f.regex);
      keys.except = f.texts;
      keys.part = positive ? f.parts[0] : formulas_.negate(f.parts[0]);
      (positive ? p.each : p.some).push_back(std::move(keys));
      if (p.some.size() > kMaxSome)
        reader_.refuse(f.where, "more than three negated key sets in one object can't be enforced");
      break;
    }
    case Op::property_names: {
      Keys keys;
      keys.matching = pool_.negate(strings(f.parts[0]));
      keys.part = positive ? FormulaTable::kNever : FormulaTable::kAlways;
      (positive ? p.each : p.some).push_back(std::move(keys));
      if (p.some.size() > kMaxSome)
        reader_.refuse(f.where, "more than three negated key sets in one object can't be enforced");
      break;
    }
    default: return false;
  }
  return p.min <= p.max;
}

RegexId Normalizer::strings(FormulaId f) {
  Shapes shapes{Strings{}};
  apply(shapes, f, true, kString);
  Normal out;
  if (!reader_.error()) collect(out, std::move(shapes), kString);
  std::vector<std::string_view> texts(out.texts.begin(), out.texts.end());
  return pool_.either({out.language, pool_.any_of(std::move(texts))});
}

void Normalizer::collect(Normal& out, Shapes shapes, Kind kind) {
  std::vector<RegexId> languages;
  for (Shape& shape : shapes) {
    if (reader_.error()) return;
    if (kind <= kTrue) out.constants |= kind;
    if (auto* number = std::get_if<NumberSet>(&shape)) {
      number->settle();
      const std::string key = number->key();
      const bool known =
          std::any_of(out.numbers.begin(), out.numbers.end(), [&](const NumberSet& n) { return n.key() == key; });
      if (!known && !number->empty()) out.numbers.push_back(std::move(*number));
    }
    if (auto* text = std::get_if<Strings>(&shape)) {
      const RegexId language = pool_.both(text->conditions);
      if (text->only) {
        for (std::string& t : *text->only)
          if (pool_.matches(language, t)) out.texts.push_back(std::move(t));
      } else if (pool_.alive(language)) {
        languages.push_back(language);
      }
    }
    if (auto* items = std::get_if<Items>(&shape))
      if (auto rule = finish(*items)) {
        out.arrays.push_back(uint32_t(arrays_.size()));
        arrays_.push_back(std::move(*rule));
      }
    if (auto* properties = std::get_if<Properties>(&shape))
      if (auto rule = finish(*properties)) {
        out.objects.push_back(uint32_t(objects_.size()));
        objects_.push_back(std::move(*rule));
      }
  }
  if (kind == kString) {
    out.language = pool_.either(std::move(languages));
    if (out.language == RegexPool::kAll) out.texts.clear();
  }
}

std::optional<ArrayRule> Normalizer::finish(const Items& items) {
  ArrayRule out;
  out.min = items.min;
  out.max = items.max;
  out.contains = items.contains;
  out.unique = items.unique;
  out.where = items.where;
  uint64_t prefix = 0;
  for (const auto& [i, part] : items.at) prefix = std::max(prefix, i + 1);
  for (const auto& [from, part] : items.from) prefix = std::max(prefix, from);
  prefix = std::min(prefix, out.max);
  if (prefix > kMaxPrefix) {
    reader_.refuse_here("an array with more than 2,000 items of their own can't be enforced");
    return std::nullopt;
  }
  std::vector<std::vector<FormulaId>> parts(prefix + 1);
  for (const auto& [i, part] : items.at)
    if (i < prefix) parts[i].push_back(part);
  for (const auto& [from, part] : items.from)
    for (uint64_t i = from; i <= prefix; ++i) parts[i].push_back(part);
  for (uint64_t i = 0; i <= prefix; ++i) {
    const FormulaId item = formulas_.all(std::move(parts[i]));
    if (i < prefix)
      out.prefix.push_back(item);
    else
      out.rest = item;
  }
  return out;
}

bool Normalizer::covers(const Keys& keys, const std::string& name) {
  if (std::find(keys.except.begin(), keys.except.end(), name) != keys.except.end()) return false;
  return keys.matching == RegexPool::kAll || pool_.matches(keys.matching, name);
}

std::optional<ObjectRule> Normalizer::finish(Properties& p) {
  ObjectRule out;
  out.min = p.min;
  out.max = p.max;
  // A name that some set of keys leaves out becomes a name of its own: then all other keys are alike.
  std::unordered_map<std::string, bool> named;
  for (const auto& name : p.names) named.emplace(name.text, true);
  for (const auto* sets : {&p.each, &p.some})
    for (const Keys& keys : *sets)
      for (const std::string& name : keys.except)
        if (named.emplace(name, true).second) p.names.push_back({name});
  for (const Keys& keys : p.some) out.some.push_back(keys.part);
  for (bool declared : {true, false}) {
    for (Properties::Name& name : p.names) {
      if (name.declared != declared) continue;
      for (const Keys& keys : p.each)
        if (covers(keys, name.text)) name.parts.push_back(keys.part);
      ObjectRule::Name made{name.text, formulas_.all(std::move(name.parts)), name.required, declared, 0};
      if (made.required && made.part == FormulaTable::kNever) return std::nullopt;
      for (size_t i = 0; i < p.some.size(); ++i)
        if (covers(p.some[i], name.text)) made.witness |= 1u << i;
      out.names.push_back(std::move(made));
    }
    if (declared) out.declared = out.names.size();
  }
  if (!split_cells(out, p)) return std::nullopt;
  return out;
}

bool Normalizer::split_cells(ObjectRule& rule, const Properties& p) {
  rule.cells = {{RegexPool::kAll, FormulaTable::kAlways, 0}};
  auto split = [&](const Keys& keys, FormulaId part, uint32_t witness) {
    std::vector<ObjectRule::Cell> next;
    for (const ObjectRule::Cell& cell : rule.cells) {
      const RegexId in = pool_.both({cell.keys, keys.matching}), out = pool_.both({cell.keys, pool_.negate(keys.matching)});
      const FormulaId both = formulas_.all({cell.part, part});
      if (both != FormulaTable::kNever && pool_.alive(in)) next.push_back({in, both, cell.witness | witness});
      if (pool_.alive(out)) next.push_back({out, cell.part, cell.witness});
    }
    rule.cells = std::move(next);
  };
  for (const Keys& keys : p.each) {
    split(keys, keys.part, 0);
    if (rule.cells.size() > kMaxCells) {
      reader_.refuse_here("more than 24 overlapping sets of keys in one object can't be enforced");
      return false;
    }
  }
  for (size_t i = 0; i < p.some.size(); ++i) split(p.some[i], FormulaTable::kAlways, 1u << i);
  return true;
}

bool Normalizer::surely_empty(FormulaId f, int depth) {
  if (f == FormulaTable::kNever) return true;
  if (kinds(f) == 0) return true;
  // Of what refers to itself nothing is sure before it is known.
  if (auto it = known_.find(f); it != known_.end() && it->second == kUnderWay) return false;
  const Normal& n = normal(f);
  if (reader_.error() || n.scalar()) return false;
  for (uint32_t i : n.arrays) {
    const ArrayRule& rule = arrays_[i];
    bool empty = false;
    for (uint64_t k = 0; k < rule.min && k <= rule.prefix.size() && depth > 0 && !empty; ++k)
      empty = surely_empty(rule.item(k), depth - 1);
    if (!empty) return false;
  }
  for (uint32_t i : n.objects) {
    const ObjectRule& rule = objects_[i];
    uint64_t required = 0;
    bool empty = false;
    for (const ObjectRule::Name& name : rule.names) {
      if (!name.required || empty) continue;
      ++required;
      empty = depth > 0 && surely_empty(name.part, depth - 1);
    }
    if (!empty && required <= rule.max) return false;
  }
  return true;
}

bool Normalizer::disjoint(FormulaId a, FormulaId b) {
  if ((kinds(a) & kinds(b)) == 0) return true;
  const bool out = surely_empty(formulas_.all({a, b}));
  if (!reader_.error()) return out;
  // Whether the two can be told apart matters only if they stay together, and is refused then.
  reader_.forgive();
  return false;
}

// oneOf as alternatives, each of which rules out the others it could coincide with.
std::optional<FormulaId> Normalizer::exactly_one(FormulaId id) {
  auto [it, fresh] = ones_.try_emplace(id, std::nullopt);
  if (!fresh) return it->second;
  const std::vector<FormulaId> parts = formulas_.at(id).parts;
  std::vector<std::vector<FormulaId>> options(parts.size());
  for (size_t i = 0; i < parts.size(); ++i) options[i].push_back(parts[i]);
  for (size_t i = 0; i < parts.size() && !reader_.error(); ++i)
    for (size_t j = i + 1; j < parts.size() && !reader_.error(); ++j) {
      if (disjoint(parts[i], parts[j])) continue;
      options[i].push_back(formulas_.negate(parts[j]));
      options[j].push_back(formulas_.negate(parts[i]));
    }
  std::vector<FormulaId> spelt_out;
  for (auto& option : options) spelt_out.push_back(formulas_.all(std::move(option)));
  const FormulaId out = formulas_.any(std::move(spelt_out));
  ones_[id] = out;
  return out;
}

}  // namespace unisono::grammar

// The keywords of SchemaReader that say something about a value itself or about its parts.
#include <algorithm>
#include <cmath>

#include "grammar/formats.h"
#include "grammar/regex_parser.h"
#include "grammar/schema_reader.h"
#include "grammar/uri.h"

namespace unisono::grammar {

namespace {

using Op = Formula::Op;

std::string_view view(const boost::json::string& s) { return {s.data(), s.size()}; }
std::string_view key_of(const boost::json::key_value_pair& member) { return {member.key().data(), member.key().size()}; }

std::optional<Decimal> decimal(const Json& value) {
  if (value.is_int64()) return Decimal::of(value.get_int64());
  if (value.is_uint64()) return Decimal::of(value.get_uint64());
  if (value.is_double() && std::isfinite(value.get_double())) return Decimal::of(value.get_double());
  return std::nullopt;
}

// Beyond 64 bits only the nearest double is known: many an integer could have been written.
bool is_rounded(const Json& value) {
  return value.is_double() && (value.get_double() >= 0x1p64 || value.get_double() <= -0x1p63);
}

// What isn't beyond the bound, whichever number the double stands for.
Decimal on_the_safe_side(double bound, bool upper) {
  const double inner = std::nextafter(bound, upper ? -HUGE_VAL : HUGE_VAL);
  if (std::isfinite(inner)) return Decimal::of(inner);
  return {Decimal::of(bound).digits * 10, 0};
}

Formula atom(Op op) {
  Formula f;
  f.op = op;
  return f;
}

Formula types(uint64_t kinds, bool integer = false) {
  Formula f = atom(Op::types);
  f.n = kinds;
  f.integer = integer;
  return f;
}

Formula applied(Op op, FormulaId part) {
  Formula f = atom(op);
  f.parts = {part};
  return f;
}

constexpr const char* kRounded =
    "a number beyond 64 bits is known only as its nearest double, so that it can't be enforced";
constexpr int kMaxConstDepth = 64;
constexpr uint64_t kMaxLength = 100'000'000;

}  // namespace

FormulaId SchemaReader::required(std::string_view name) {
  Formula f = atom(Op::required);
  f.texts = {std::string(name)};
  return formulas_.add(std::move(f));
}

FormulaId SchemaReader::read_types(const Json& value) {
  uint64_t kinds = 0;
  bool integer = false;
  auto add = [&](const Json& name) {
    if (name == "null")
      kinds |= kNull;
    else if (name == "boolean")
      kinds |= kFalse | kTrue;
    else if (name == "string")
      kinds |= kString;
    else if (name == "array")
      kinds |= kArray;
    else if (name == "object")
      kinds |= kObject;
    else if (name == "number")
      kinds |= kNumber, integer = false;
    else if (name == "integer")
      integer = (kinds & kNumber) ? integer : true, kinds |= kNumber;
    else
      refuse(here("type"), "it must be one or more of null, boolean, integer, number, string, array, object");
  };
  if (const auto* list = value.if_array()) {
    for (const Json& name : *list) add(name);
    if (std::find(list->begin(), list->end(), Json("number")) != list->end()) integer = false;
  } else {
    add(value);
  }
  Formula f = types(kinds, integer);
  f.strict = integer && draft_ == Draft::draft4;
  return formulas_.add(std::move(f));
}

FormulaId SchemaReader::equal_to(const Json& value, int depth) {
  if (depth > kMaxConstDepth) {
    refuse_here("a constant is nested deeper than 64");
    return FormulaTable::kNever;
  }
  std::vector<FormulaId> parts;
  if (const auto* array = value.if_array()) {
    parts.push_back(formulas_.add(types(kArray)));
    for (Op op : {Op::min_items, Op::max_items}) {
      Formula f = atom(op);
      f.n = array->size();
      parts.push_back(formulas_.add(std::move(f)));
    }
    for (size_t i = 0; i < array->size(); ++i) {
      Formula f = applied(Op::item, equal_to((*array)[i], depth + 1));
      f.n = i;
      parts.push_back(formulas_.add(std::move(f)));
    }
    return formulas_.all(std::move(parts));
  }
  if (const auto* object = value.if_object()) {
    parts.push_back(formulas_.add(types(kObject)));
    Formula others = applied(Op::other_properties, FormulaTable::kNever);
    for (const auto& member : *object) {
      Formula f = applied(Op::property, equal_to(member.value(), depth + 1));
      f.texts = {std::string(key_of(member))};
      f.declared = true;
      parts.push_back(formulas_.add(std::move(f)));
      parts.push_back(required(key_of(member)));
      others.texts.emplace_back(key_of(member));
    }
    parts.push_back(formulas_.add(std::move(others)));
    return formulas_.all(std::move(parts));
  }
  Formula f = atom(Op::scalars);
  if (value.is_null())
    f.n = kNull;
  else if (value.is_bool())
    f.n = value.get_bool() ? kTrue : kFalse;
  else if (value.is_string())
    f.texts = {std::string(view(value.get_string()))};
  else if (is_rounded(value))
    refuse_here(kRounded);
  else if (auto number = decimal(value))
    f.numbers = {number->trimmed()};
  return formulas_.add(std::move(f));
}

FormulaId SchemaReader::numeric(Op op, const Json& value, std::string_view keyword) {
  auto number = decimal(value);
  if (!number || (op == Op::multiple_of && number->digits <= 0)) {
    refuse(here(keyword), op == Op::multiple_of ? "it must be a number above 0" : "it must be a number");
    return FormulaTable::kNever;
  }
  if (is_rounded(value)) {
    if (op == Op::multiple_of) {
      refuse(here(keyword), kRounded);
      return FormulaTable::kNever;
    }
    number = on_the_safe_side(value.get_double(), op == Op::number_to || op == Op::number_below);
  }
  Formula f = atom(op);
  f.numbers = {number->trimmed()};
  f.where = here(keyword);
  return formulas_.add(std::move(f));
}

std::optional<uint64_t> SchemaReader::count(const JsonObject& o, std::string_view keyword) {
  const auto* value = o.if_contains(keyword);
  if (!value) return std::nullopt;
  auto number = decimal(*value);
  if (!number || number->digits < 0 || !number->is_integer()) {
    refuse(here(keyword), "it must be a whole number that isn't negative");
    return std::nullopt;
  }
  const auto n =
      number->at(number->scale) / boost::multiprecision::pow(boost::multiprecision::cpp_int(10), unsigned(number->scale));
  return n > kMaxLength ? kMaxLength : uint64_t(n);
}

void SchemaReader::counts(const JsonObject& o, std::string_view keyword, Op op, std::vector<FormulaId>& parts) {
  auto n = count(o, keyword);
  if (!n) return;
  const bool upper = op == Op::max_items || op == Op::max_properties;
  if (*n >= kMaxLength) {
    // Nothing that long is ever written: an upper bound beyond it says nothing.
    if (!upper) refuse(here(keyword), "it must be below 100,000,000");
    return;
  }
  Formula f = atom(op);
  f.n = *n;
  f.where = here(keyword);
  parts.push_back(formulas_.add(std::move(f)));
}

std::optional<RegexId> SchemaReader::pattern(std::string_view text, std::string_view keyword) {
  auto it = patterns_.find(std::string(text));
  if (it != patterns_.end()) return it->second;
  Result<RegexId> language = parse_regex(pool_, text, Match::anywhere);
  if (!language) {
    refuse(here(keyword), language.error().message);
    return std::nullopt;
  }
  patterns_.emplace(std::string(text), *language);
  return *language;
}

void SchemaReader::read_scalars(const JsonObject& o, std::vector<FormulaId>& parts) {
  if (const auto* type = o.if_contains("type")) parts.push_back(read_types(*type));
  if (const auto* values = o.if_contains("enum")) {
    const auto* list = values->if_array();
    if (!list) return refuse(here("enum"), "it must be an array");
    Formula scalars = atom(Op::scalars);
    std::vector<FormulaId> options;
    for (const Json& value : *list) {
      const FormulaId id = equal_to(value, 0);
      const Formula& f = formulas_.at(id);
      if (f.op != Op::scalars) {
        options.push_back(id);
        continue;
      }
      scalars.n |= f.n;
      scalars.texts.insert(scalars.texts.end(), f.texts.begin(), f.texts.end());
      scalars.numbers.insert(scalars.numbers.end(), f.numbers.begin(), f.numbers.end());
    }
    if (scalars.n != 0 || !scalars.texts.empty() || !scalars.numbers.empty())
      options.push_back(formulas_.add(std::move(scalars)));
    parts.push_back(formulas_.any(std::move(options)));
  }
  if (const auto* value = o.if_contains("const"); value && since(Draft::draft6)) parts.push_back(equal_to(*value, 0));

  struct Bound {
    std::string_view inclusive, exclusive;
    Op op, open_op;
  };
  for (const Bound& b : {Bound{"minimum", "exclusiveMinimum", Op::number_from, Op::number_above},
                         Bound{"maximum", "exclusiveMaximum", Op::number_to, Op::number_below}}) {
    const auto *bound = o.if_contains(b.inclusive), *open = o.if_contains(b.exclusive);
    const bool old_form = open && open->is_bool();  // draft 4's: it sharpens the other keyword
    if (bound) parts.push_back(numeric(old_form && open->get_bool() ? b.open_op : b.op, *bound, b.inclusive));
    if (open && !old_form && (since(Draft::draft6) || open->is_number()))
      parts.push_back(numeric(b.open_op, *open, b.exclusive));
  }
  if (const auto* step = o.if_contains("multipleOf")) parts.push_back(numeric(Op::multiple_of, *step, "multipleOf"));

  const auto least = count(o, "minLength"), most = count(o, "maxLength");
  if ((least && *least > 0) || (most && *most < kMaxLength)) {
    const uint64_t min = least.value_or(0), max = most && *most < kMaxLength ? *most : RegexPool::kUnbounded;
    Formula f = atom(Op::text);
    f.regex = min > max ? RegexPool::kNothing : pool_.repeat(RegexPool::kAnyChar, uint32_t(min), uint32_t(max));
    parts.push_back(formulas_.add(std::move(f)));
  }
  if (const auto* text = o.if_contains("pattern")) {
    if (!text->is_string()) return refuse(here("pattern"), "it must be a string");
    if (auto language = pattern(view(text->get_string()), "pattern")) {
      Formula f = atom(Op::text);
      f.regex = *language;
      parts.push_back(formulas_.add(std::move(f)));
    }
  }
  const auto* format = o.if_contains("format");
  if (!format || !options_.enforce_formats) return;
  if (!format->is_string()) return refuse(here("format"), "it must be a string");
  std::string rule;
  switch (find_format(view(format->get_string()), &rule)) {
    case FormatKind::beyond_patterns:
      return refuse(here("format"), "the format " + std::string(view(format->get_string())) + " can't be enforced");
    case FormatKind::unknown: return;  // an annotation, by the standard
    case FormatKind::enforced: break;
  }
  const std::string name = "format " + std::string(view(format->get_string()));
  auto known = patterns_.find(name);
  if (known == patterns_.end()) {
    Result<RegexId> language = parse_regex(pool_, rule, Match::whole);
    if (!language) return refuse(here("format"), language.error().message);
    known = patterns_.emplace(name, *language).first;
  }
  Formula f = atom(Op::text);
  f.regex = known->second;
  parts.push_back(formulas_.add(std::move(f)));
}

void SchemaReader::read_arrays(const JsonObject& o, std::vector<FormulaId>& parts) {
  uint64_t prefix = 0;
  auto tuple = [&](const Json& list, std::string_view keyword) {
    if (!list.is_array()) return refuse(here(keyword), "it must be an array of schemas");
    for (const Json& schema : list.get_array()) {
      Formula f = applied(Op::item, child(schema, keyword, std::to_string(prefix)));
      f.n = prefix++;
      parts.push_back(formulas_.add(std::move(f)));
    }
  };
  auto rest = [&](const Json& schema, std::string_view keyword) {
    Formula f = applied(Op::items_from, child(schema, keyword));
    f.n = prefix;
    f.where = here(keyword);
    parts.push_back(formulas_.add(std::move(f)));
  };
  const auto* items = o.if_contains("items");
  if (const auto* list = o.if_contains("prefixItems"); list && since(Draft::draft2020)) tuple(*list, "prefixItems");
  if (items && items->is_array()) {
    tuple(*items, "items");
    if (const auto* more = o.if_contains("additionalItems")) rest(*more, "additionalItems");
  } else if (items) {
    rest(*items, "items");
  }
  counts(o, "minItems", Op::min_items, parts);
  counts(o, "maxItems", Op::max_items, parts);
  if (const auto* unique = o.if_contains("uniqueItems"); unique && *unique == true) {
    Formula f = atom(Op::unique_items);
    f.where = here("uniqueItems");
    parts.push_back(formulas_.add(std::move(f)));
  }
  const auto* contains = since(Draft::draft6) ? o.if_contains("contains") : nullptr;
  if (contains) {
    Formula f = applied(Op::contains, child(*contains, "contains"));
    f.n = since(Draft::draft2019) ? count(o, "minContains").value_or(1) : 1;
    f.m = since(Draft::draft2019) ? count(o, "maxContains").value_or(RegexPool::kUnbounded) : RegexPool::kUnbounded;
    f.where = here("contains");
    parts.push_back(formulas_.add(std::move(f)));
  }
}

void SchemaReader::read_objects(const JsonObject& o, std::vector<FormulaId>& parts) {
  std::vector<std::string> names;
  std::vector<RegexId> patterns;
  auto map_of = [&](std::string_view keyword) -> const JsonObject* {
    const auto* value = o.if_contains(keyword);
    if (value && !value->is_object()) refuse(here(keyword), "it must be an object");
    return value ? value->if_object() : nullptr;
  };
  if (const JsonObject* properties = map_of("properties"))
    for (const auto& member : *properties) {
      Formula f = applied(Op::property, child(member.value(), "properties", key_of(member)));
      f.texts = {std::string(key_of(member))};
      f.declared = true;
      parts.push_back(formulas_.add(std::move(f)));
      names.emplace_back(key_of(member));
    }
  if (const JsonObject* by_pattern = map_of("patternProperties"))
    for (const auto& member : *by_pattern) {
      auto language = pattern(key_of(member), "patternProperties");
      if (!language) return;
      Formula f = applied(Op::pattern_property, child(member.value(), "patternProperties", key_of(member)));
      f.regex = *language;
      f.where = here("patternProperties");
      parts.push_back(formulas_.add(std::move(f)));
      patterns.push_back(*language);
    }
  if (const auto* others = o.if_contains("additionalProperties")) {
    Formula f = applied(Op::other_properties, child(*others, "additionalProperties"));
    f.texts = names;
    f.regex = pool_.either(patterns);
    f.where = here("additionalProperties");
    if (f.parts[0] != FormulaTable::kAlways) parts.push_back(formulas_.add(std::move(f)));
  }
  const auto* need = o.if_contains("required");
  if (need && need->is_array()) {
    for (const Json& name : need->get_array()) {
      if (!name.is_string()) return refuse(here("required"), "it must be an array of strings");
      parts.push_back(required(view(name.get_string())));
    }
  } else if (need && !(need->is_bool() && draft_ == Draft::draft4)) {
    if (!need->is_bool()) return refuse(here("required"), "it must be an array of strings");
    return refuse(here("required"), "it must be an array of strings, not true or false");
  }
  if (const auto* keys = since(Draft::draft6) ? o.if_contains("propertyNames") : nullptr) {
    Formula f = applied(Op::property_names, child(*keys, "propertyNames"));
    f.where = here("propertyNames");
    parts.push_back(formulas_.add(std::move(f)));
  }
  counts(o, "minProperties", Op::min_properties, parts);
  counts(o, "maxProperties", Op::max_properties, parts);
  read_dependencies(o, parts);
  read_unevaluated(o, parts);
}

void SchemaReader::read_dependencies(const JsonObject& o, std::vector<FormulaId>& parts) {
  for (std::string_view keyword : {"dependencies", "dependentRequired", "dependentSchemas"}) {
    const auto* map = keyword == "dependencies" || since(Draft::draft2019) ? o.if_contains(keyword) : nullptr;
    if (!map) continue;
    if (!map->is_object()) return refuse(here(keyword), "it must be an object");
    for (const auto& member : map->get_object()) {
      const FormulaId absent = formulas_.negate(required(key_of(member)));
      std::vector<FormulaId> then;
      if (const auto* names = member.value().if_array(); names && keyword != "dependentSchemas") {
        for (const Json& name : *names) {
          if (!name.is_string()) return refuse(here(keyword), "it must name strings");
          then.push_back(required(view(name.get_string())));
        }
      } else if (keyword == "dependentRequired") {
        return refuse(here(keyword), "it must hold arrays of strings");
      } else {
        then.push_back(child(member.value(), keyword, key_of(member)));
      }
      // For what isn't an object the keyword says nothing, while "not required" would be false.
      parts.push_back(formulas_.any({formulas_.add(types(kAnyKind & ~kObject)), absent, formulas_.all(std::move(then))}));
    }
  }
}

// The schemas whose keywords always apply to the same value as o's. False: some apply only sometimes, and matter.
bool SchemaReader::evaluated_names(const JsonObject& o, const std::string& base, std::vector<const JsonObject*>& sources,
                                   int depth) {
  if (depth > 20 || sources.size() > 1000) return false;
  sources.push_back(&o);
  const auto* id = o.if_contains("$id");
  std::string here_base = base;
  if (id && id->is_string() && depth > 0)
    here_base = resolve_uri(base, view(id->get_string()).substr(0, view(id->get_string()).find('#')));
  if (const auto* all = o.if_contains("allOf"); all && all->is_array())
    for (const Json& part : all->get_array())
      if (part.is_object() && !evaluated_names(part.get_object(), here_base, sources, depth + 1)) return false;
  if (const auto* ref = o.if_contains("$ref"); ref && ref->is_string()) {
    auto place = find(here_base, view(ref->get_string()));
    if (!place) return false;
    if (place->schema->is_object() && !evaluated_names(place->schema->get_object(), place->base, sources, depth + 1))
      return false;
  }
  if (o.contains("$dynamicRef") || o.contains("$recursiveRef")) return false;
  for (std::string_view keyword : {"anyOf", "oneOf", "if", "then", "else", "dependentSchemas"})
    if (o.contains(keyword)) return false;
  return true;
}

void SchemaReader::read_unevaluated(const JsonObject& o, std::vector<FormulaId>& parts) {
  if (!since(Draft::draft2019)) return;
  for (std::string_view keyword : {"unevaluatedProperties", "unevaluatedItems"}) {
    const auto* schema = o.if_contains(keyword);
    if (!schema || (schema->is_bool() && schema->get_bool())) continue;
    std::vector<const JsonObject*> sources;
    if (!evaluated_names(o, base_, sources, 0))
      return refuse(here(keyword),
                    "beside keywords that apply only sometimes (anyOf, oneOf, if, ...) it can't be enforced");
    const FormulaId part = child(*schema, keyword);
    bool everything = false, unsure = false;
    Formula f = applied(keyword == "unevaluatedItems" ? Op::items_from : Op::other_properties, part);
    f.where = here(keyword);
    std::vector<RegexId> patterns;
    for (const JsonObject* source : sources) {
      const bool other = source != &o;
      if (f.op == Op::items_from) {
        const auto *items = source->if_contains("items"), *prefix = source->if_contains("prefixItems");
        if (prefix && prefix->is_array()) f.n = std::max<uint64_t>(f.n, prefix->get_array().size());
        if (items && items->is_array()) f.n = std::max<uint64_t>(f.n, items->get_array().size());
        everything |= (items && !items->is_array()) || (items && source->contains("additionalItems")) ||
                      (other && source->contains(keyword));
        unsure |= source->contains("contains") && since(Draft::draft2020);
        continue;
      }
      everything |= source->contains("additionalProperties") || (other && source->contains(keyword));
      if (const auto* map = source->if_contains("properties"); map && map->is_object())
        for (const auto& member : map->get_object()) f.texts.emplace_back(key_of(member));
      if (const auto* map = source->if_contains("patternProperties"); map && map->is_object())
        for (const auto& member : map->get_object())
          if (auto language = pattern(key_of(member), "patternProperties")) patterns.push_back(*language);
    }
    if (unsure && !everything) return refuse(here(keyword), "beside `contains` it can't be enforced");
    f.regex = pool_.either(std::move(patterns));
    if (!everything) parts.push_back(formulas_.add(std::move(f)));
  }
}

}  // namespace unisono::grammar

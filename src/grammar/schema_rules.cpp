#include "grammar/schema_rules.h"

#include <algorithm>

#include "base/check.h"
#include "grammar/regex_parser.h"

namespace unisono::grammar {

namespace {

constexpr size_t kMaxReachable = 30'000;

// What a scalar's text stands for: equal values, equal strings.
std::string canonical(std::string_view text) {
  if (!text.starts_with('"')) {
    auto number = Decimal::parse(text);
    return number ? "n" + number->text() : std::string(text);
  }
  Result<Json> value = parse_json(text);
  check(value.ok() && value->is_string(), "a captured string is JSON");
  return "s" + std::string(value->get_string());
}

constexpr std::string_view kNumberPattern =
    "-?(?:0|[1-9][0-9]{0,31})(?:\\.[0-9]{1,24})?(?:[eE][+-]?[0-9]{1,2})?|"
    "-?[1-9](?:\\.[0-9]{1,24})?[eE][+-]?(?:[12][0-9][0-9]|30[0-7])";
constexpr std::string_view kIntegerPattern = "-?(?:0|[1-9][0-9]{0,31})(?:\\.0{1,24})?",
                           kStrictPattern = "-?(?:0|[1-9][0-9]{0,31})";

}  // namespace

std::string json_text(std::string_view text) {
  std::string out = "\"";
  for (char c : text) {
    constexpr char kHex[] = "0123456789abcdef";
    switch (c) {
      case '"': out += "\\\""; break;
      case '\\': out += "\\\\"; break;
      case '\b': out += "\\b"; break;
      case '\f': out += "\\f"; break;
      case '\n': out += "\\n"; break;
      case '\r': out += "\\r"; break;
      case '\t': out += "\\t"; break;
      default:
        if (uint8_t(c) < 32)
          out.append("\\u00").append(1, kHex[uint8_t(c) >> 4]).append(1, kHex[c & 15]);
        else
          out += c;
    }
  }
  return out + '"';
}

SchemaRules::SchemaRules(const Json& schema, const JsonSchemaOptions& options, RegexPool& pool, Lexicon& lexicon,
                         RuleTable& rules)
    : how_(options),
      pool_(pool),
      lexicon_(lexicon),
      rules_(rules),
      reader_(schema, how_, formulas_, pool),
      normalizer_(formulas_, reader_, pool) {
  open_brace_ = lexicon_.literals({"{"});
  open_bracket_ = lexicon_.literals({"["});
  const bool flexible = how_.whitespace == Whitespace::flexible, bounded = how_.whitespace == Whitespace::bounded;
  const std::string space = flexible ? "[ \\t\\n\\r]+" : "(?: |\\n[ \\t]{0,40})";
  if (flexible || bounded) space_ = pattern(space);
  const std::string maybe = flexible || bounded ? "(?:" + space + ")?" : "";
  close_brace_ = pattern(maybe + "\\}");
  close_bracket_ = pattern(maybe + "\\]");
  comma_ = pattern((flexible ? maybe : "") + ",");
  colon_ = pattern((flexible ? maybe : "") + ":");
}

LexId SchemaRules::pattern(std::string_view text) {
  Result<RegexId> language = parse_regex(pool_, text, Match::whole);
  check(language.ok(), "our own patterns are patterns");
  return lexicon_.regex(*language);
}

Result<std::unique_ptr<SchemaRules>> SchemaRules::compile(const Json& schema, const JsonSchemaOptions& options,
                                                          RegexPool& pool, Lexicon& lexicon, RuleTable& rules) {
  std::unique_ptr<SchemaRules> out(new SchemaRules(schema, options, pool, lexicon, rules));
  out->root_ = out->reader_.root();
  if (out->reader_.error()) return *out->reader_.error();
  if (auto error = out->check_all(out->root_)) return *error;
  if (pool.exhausted()) return Error{"the schema is too complex", ""};
  if (!out->productive(out->root_)) return Error{"no value satisfies the schema", ""};
  return out;
}

// Everything that can be reached is looked at before the first token, so that nothing is refused later.
std::optional<Error> SchemaRules::check_all(FormulaId root) {
  std::vector<FormulaId> reached{root};
  std::unordered_map<FormulaId, bool> met{{root, true}};
  std::vector<FormulaId> next;
  for (size_t i = 0; i < reached.size(); ++i) {
    next.clear();
    children(normalizer_.normal(reached[i]), next);
    if (reader_.error()) return reader_.error();
    if (reached.size() > kMaxReachable || formulas_.exhausted() || pool_.exhausted())
      return Error{"the schema is too complex", ""};
    for (FormulaId f : next)
      if (met.emplace(f, true).second) reached.push_back(f);
  }
  productive_.assign(formulas_.size(), false);
  bool changed = true;
  while (changed) {
    changed = false;
    for (size_t i = reached.size(); i-- > 0;) {
      if (productive_[reached[i]] || !becomes_productive(reached[i])) continue;
      productive_[reached[i]] = changed = true;
      object_search_.clear();
      array_search_.clear();
    }
  }
  for (FormulaId f : reached)
    for (uint32_t a : normalizer_.normal(f).arrays)
      if (!check_unique(normalizer_.array(a))) return reader_.error();
  return reader_.error();
}

void SchemaRules::children(const Normal& n, std::vector<FormulaId>& out) {
  for (uint32_t a : n.arrays) {
    const ArrayRule& rule = normalizer_.array(a);
    if (rule.contains.size() > 3)
      return reader_.refuse(rule.contains[3].where, "more than three conditions on some items can't be enforced");
    for (const auto& c : rule.contains)
      if (c.min > 500 || (c.max < kNoLimit && c.max > 500) || rule.min > 500)
        return reader_.refuse(c.where, "counts above 500 can't be enforced here");
    uint64_t last = rule.prefix.size();
    for (const auto& c : rule.contains) last = std::max(last, c.from);
    for (uint64_t i = 0; i <= last && i < rule.max; ++i)
      for (uint32_t subset = 0; subset < (1u << rule.contains.size()); ++subset) out.push_back(item_with(rule, i, subset));
  }
  for (uint32_t o : n.objects) {
    const ObjectRule& rule = normalizer_.object(o);
    if (rule.max == 0) continue;
    for (const ObjectRule::Name& name : rule.names)
      for (uint32_t subset = name.witness;; subset = (subset - 1) & name.witness) {
        out.push_back(with(name.part, rule.some, subset));
        if (subset == 0) break;
      }
    for (const ObjectRule::Cell& cell : rule.cells)
      for (uint32_t subset = cell.witness;; subset = (subset - 1) & cell.witness) {
        out.push_back(with(cell.part, rule.some, subset));
        if (subset == 0) break;
      }
  }
}

FormulaId SchemaRules::with(FormulaId part, const std::vector<FormulaId>& some, uint32_t subset) {
  if (subset == 0) return part;
  std::vector<FormulaId> parts{part};
  for (size_t i = 0; i < some.size(); ++i)
    if ((subset >> i) & 1) parts.push_back(some[i]);
  return formulas_.all(std::move(parts));
}

FormulaId SchemaRules::item_with(const ArrayRule& rule, uint64_t index, uint32_t subset) {
  std::vector<FormulaId> parts{rule.item(index)};
  for (size_t j = 0; j < rule.contains.size(); ++j) {
    const auto& c = rule.contains[j];
    if (c.from > index) continue;
    if ((subset >> j) & 1)
      parts.push_back(c.part);
    else if (c.max < kNoLimit)
      parts.push_back(formulas_.negate(c.part));
  }
  return parts.size() == 1 ? parts[0] : formulas_.all(std::move(parts));
}

bool SchemaRules::becomes_productive(FormulaId f) {
  const Normal& n = normalizer_.normal(f);
  if (n.scalar()) return true;
  for (uint32_t a : n.arrays) {
    ArrayState start;
    start.found.resize(normalizer_.array(a).contains.size());
    if (completable(a, start)) return true;
  }
  for (uint32_t o : n.objects)
    if (completable(o, ObjectState{})) return true;
  return false;
}

uint64_t SchemaRules::domain(FormulaId f, uint64_t cap) {
  const Normal& n = normalizer_.normal(f);
  uint64_t total = uint64_t((n.constants & 1) + ((n.constants >> 1) & 1) + ((n.constants >> 2) & 1)) + n.texts.size();
  for (const NumberSet& set : n.numbers) total += set.count(cap);
  if (n.language != RegexPool::kNothing) total += pool_.count(n.language, cap);
  return std::min(total, cap);
}

bool SchemaRules::check_unique(const ArrayRule& rule) {
  if (!rule.unique || rule.max < 2) return true;
  for (uint64_t i = 0; i <= rule.prefix.size() && i < rule.max; ++i) {
    const Normal& n = normalizer_.normal(rule.item(i));
    auto lives = [&](const std::vector<uint32_t>& list) { return !list.empty() && productive(rule.item(i)); };
    if (lives(n.arrays) || lives(n.objects)) {
      reader_.refuse(rule.where, "uniqueItems is enforced for items that are strings, numbers, booleans or null only");
      return false;
    }
    const bool several = n.numbers.size() + (n.language != RegexPool::kNothing) + (n.constants || !n.texts.empty()) > 1;
    const uint64_t needed = i < rule.prefix.size() ? i + 1 : rule.min;
    if (i < rule.min &&
        (domain(rule.item(i), needed + 1) < needed || (several && needed > 1 && domain(rule.item(i), 100'000) < 100'000))) {
      reader_.refuse(rule.where, "there may be too few different values for so many items");
      return false;
    }
  }
  if (!rule.contains.empty()) reader_.refuse(rule.where, "uniqueItems beside `contains` can't be enforced");
  return rule.contains.empty();
}

NodeId SchemaRules::node(Key key, RuleNode::Resolve resolve) {
  auto [it, fresh] = nodes_.try_emplace(key, 0);
  if (fresh) {
    it->second = rules_.add_lazy(this, uint32_t(keys_.size()), resolve);
    keys_.push_back(key);
  }
  return it->second;
}

uint32_t SchemaRules::state_id(uint32_t rule, const ObjectState& state) {
  auto [it, fresh] = object_index_.try_emplace({rule, state}, uint32_t(object_states_.size()));
  if (fresh) object_states_.push_back(&it->first.second);
  return it->second;
}

NodeId SchemaRules::object_node(Place place, uint32_t rule, const ObjectState& state, uint32_t c) {
  const auto resolve = place == Place::key_read     ? RuleNode::Resolve::label
                       : place == Place::other_read ? RuleNode::Resolve::text
                                                    : RuleNode::Resolve::none;
  return node({place, rule, state_id(rule, state), c}, resolve);
}

NodeId SchemaRules::array_node(Place place, uint32_t rule, const ArrayState& state, uint32_t c) {
  auto [it, fresh] = array_index_.try_emplace({rule, state}, uint32_t(array_states_.size()));
  if (fresh) array_states_.push_back(&it->first.second);
  return node({place, rule, it->second, c},
              place == Place::unique_read ? RuleNode::Resolve::text : RuleNode::Resolve::none);
}

NodeId SchemaRules::root() {
  const NodeId id = rules_.add();
  add_value(rules_.peek(id), root_, RuleTable::kEnd);
  return id;
}

void SchemaRules::add_value(RuleNode& node, FormulaId f, NodeId after) {
  if (!productive(f)) return;
  add_scalars(node, f, after, {});
  const Normal& n = normalizer_.normal(f);
  if (!n.arrays.empty() || !n.objects.empty()) node.call(this->node({Place::structured, f}), after);
}

void SchemaRules::add_scalars(RuleNode& node, FormulaId f, NodeId after, const std::vector<std::string>& unlike) {
  const Normal& n = normalizer_.normal(f);
  auto used = [&](const std::string& value) { return std::binary_search(unlike.begin(), unlike.end(), value); };
  auto literals = [&] {
    std::vector<std::string> texts;
    const std::pair<Kind, const char*> constants[] = {{kNull, "null"}, {kFalse, "false"}, {kTrue, "true"}};
    for (const auto& [kind, word] : constants)
      if ((n.constants & kind) && !used(word)) texts.emplace_back(word);
    for (const std::string& t : n.texts)
      if (!used("s" + t)) texts.push_back(json_text(t));
    for (const NumberSet& set : n.numbers) {
      if (!set.finite()) continue;
      for (const Decimal& value : *set.finite()) {
        const std::string text = value.text();
        if (used("n" + text)) continue;
        texts.push_back(text);
        if (value.is_integer() && !set.is_strict()) texts.push_back(text + ".0");
      }
    }
    return lexicon_.literals(std::move(texts));
  };
  if (!unlike.empty()) {
    node.read(literals(), after);
  } else {
    auto [it, fresh] = literals_.try_emplace(f, 0);
    if (fresh) it->second = literals();
    node.read(it->second, after);
  }
  for (NumberSet set : n.numbers) {
    if (set.finite()) continue;
    for (const std::string& value : unlike)
      if (value[0] == 'n' && value != "null") set.exclude(*Decimal::parse(std::string_view(value).substr(1)));
    node.read(set.plain() ? pattern(set.is_strict()    ? kStrictPattern
                                    : set.is_integer() ? kIntegerPattern
                                                       : kNumberPattern)
                          : lexicon_.number(set),
              after);
  }
  if (n.language == RegexPool::kNothing) return;
  RegexId language = n.language;
  std::vector<std::string_view> taken;
  for (const std::string& value : unlike)
    if (value[0] == 's') taken.push_back(std::string_view(value).substr(1));
  if (!taken.empty()) language = pool_.both({language, pool_.negate(pool_.any_of(std::move(taken)))});
  node.read(lexicon_.json_string(language), after);
}

bool SchemaRules::any_unlike(FormulaId f, const std::vector<std::string>& used) {
  RuleNode probe;
  add_scalars(probe, f, RuleTable::kEnd, used);
  return !probe.edges.empty();
}

void SchemaRules::expand(RuleNode& node) {
  const Key key = keys_[node.key];
  switch (key.place) {
    case Place::structured: return expand_structured(node, key.a);
    case Place::array_open:
    case Place::array_item:
    case Place::array_next: return expand_array(node, key);
    case Place::colon: return node.read(colon_, this->node({Place::object_value, key.a, key.b, key.c}));
    case Place::object_value:
      expand_object_value(node, key);
      return node.read(space_, this->node({Place::object_part, key.a, key.b, key.c}));
    case Place::object_part: return expand_object_value(node, key);
    default: return expand_object(node, key);
  }
}

void SchemaRules::expand_structured(RuleNode& node, FormulaId f) {
  const Normal& n = normalizer_.normal(f);
  for (uint32_t o : n.objects)
    if (completable(o, ObjectState{})) node.read(open_brace_, object_node(Place::object_open, o, ObjectState{}));
  for (uint32_t a : n.arrays) {
    ArrayState start;
    start.found.resize(normalizer_.array(a).contains.size());
    if (completable(a, start)) node.read(open_bracket_, array_node(Place::array_open, a, start));
  }
}

NodeId SchemaRules::resolve(const RuleNode& node, LexId terminal, std::string_view text) {
  const Key key = keys_[node.key];
  if (key.place == Place::unique_read) {
    ArrayState state = *array_states_[key.b];
    std::string value = canonical(text);
    state.used.insert(std::lower_bound(state.used.begin(), state.used.end(), value), std::move(value));
    return array_node(Place::array_next, key.a, state);
  }
  ObjectState state = *object_states_[key.b];
  const bool flexible = how_.whitespace == Whitespace::flexible;
  if (key.place == Place::key_read) {
    const uint32_t name = facts(key.a).by_key.at(lexicon_.literal(terminal));
    return object_node(flexible ? Place::colon : Place::object_value, key.a, after_name(key.a, state, name), name);
  }
  std::string other = canonical(text).substr(1);
  state.others.insert(std::lower_bound(state.others.begin(), state.others.end(), other), std::move(other));
  state.position = uint32_t(facts(key.a).placed.size());
  if (facts(key.a).counts) ++state.count;
  return object_node(Place::colon, key.a, state, key.c | kCell);
}

}  // namespace unisono::grammar

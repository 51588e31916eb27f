// SchemaRules within objects and arrays: what may follow, and whether the value can still be completed.
#include <algorithm>

#include "grammar/schema_rules.h"

namespace unisono::grammar {

namespace {

constexpr int kSearchFuel = 4000;

std::string packed(uint32_t name) { return {char(name >> 8), char(name & 255)}; }

bool holds(const std::string& used, uint32_t name) {
  for (size_t i = 0; i < used.size(); i += 2)
    if (uint8_t(used[i]) == (name >> 8) && uint8_t(used[i + 1]) == (name & 255)) return true;
  return false;
}

}  // namespace

SchemaRules::ObjectFacts& SchemaRules::facts(uint32_t index) {
  auto [it, fresh] = facts_.try_emplace(index);
  ObjectFacts& out = it->second;
  if (!fresh) return out;
  const ObjectRule& rule = normalizer_.object(index);
  out.counts = rule.min > 0 || rule.max < kNoLimit;
  for (uint32_t i = 0; i < rule.names.size(); ++i) {
    (i < rule.declared && !how_.any_order ? out.placed : out.unplaced).push_back(i);
    out.keys.push_back(json_text(rule.names[i].text) + (how_.whitespace == Whitespace::flexible ? "" : ":"));
    out.sorted.push_back(i);
  }
  for (uint32_t i = 0; i < rule.names.size(); ++i) out.by_key.emplace(out.keys[i], i);
  std::sort(out.sorted.begin(), out.sorted.end(), [&](uint32_t a, uint32_t b) { return out.keys[a] < out.keys[b]; });
  return out;
}

SchemaRules::ObjectState SchemaRules::after_name(uint32_t index, const ObjectState& state, uint32_t name) {
  ObjectFacts& f = facts(index);
  ObjectState out = state;
  if (f.counts) ++out.count;
  if (!f.placed.empty() && name <= f.placed.back()) {
    out.position = name + 1;
  } else {
    out.position = uint32_t(f.placed.size());
    const std::string mark = packed(name);
    size_t at = 0;
    while (at < out.used.size() && out.used.compare(at, 2, mark) < 0) at += 2;
    out.used.insert(at, mark);
  }
  return out;
}

bool SchemaRules::closable(uint32_t index, const ObjectState& state) {
  const ObjectRule& rule = normalizer_.object(index);
  ObjectFacts& f = facts(index);
  if (state.bits + 1 != (1u << rule.some.size())) return false;
  if (f.counts && (state.count < rule.min || state.count > rule.max)) return false;
  for (size_t i = state.position; i < f.placed.size(); ++i)
    if (rule.names[f.placed[i]].required) return false;
  for (uint32_t i : f.unplaced)
    if (rule.names[i].required && !holds(state.used, i)) return false;
  return true;
}

uint64_t SchemaRules::others_possible(uint32_t index, uint64_t cap) {
  const ObjectRule& rule = normalizer_.object(index);
  ObjectFacts& f = facts(index);
  uint64_t total = 0;
  for (const ObjectRule::Cell& cell : rule.cells) {
    if (!productive(cell.part)) continue;
    if (!f.not_a_name) {
      std::vector<std::string_view> names;
      for (const ObjectRule::Name& name : rule.names) names.push_back(name.text);
      f.not_a_name = pool_.negate(pool_.any_of(std::move(names)));
    }
    total += pool_.count(pool_.both({cell.keys, *f.not_a_name}), cap);
  }
  return std::min(total, cap);
}

bool SchemaRules::completable(uint32_t index, const ObjectState& state) {
  const ObjectRule& rule = normalizer_.object(index);
  if (!rule.some.empty()) {
    int fuel = kSearchFuel;
    return search(index, state, fuel);
  }
  ObjectFacts& f = facts(index);
  uint64_t required = 0, optional = 0;
  auto look = [&](const ObjectRule::Name& name) {
    const bool possible = productive(name.part);
    (name.required ? required : optional) += possible || name.required;
    return possible || !name.required;
  };
  for (size_t i = state.position; i < f.placed.size(); ++i)
    if (!look(rule.names[f.placed[i]])) return false;
  for (uint32_t i : f.unplaced)
    if (!holds(state.used, i) && !look(rule.names[i])) return false;
  if (!f.counts) return true;
  if (state.count + required > rule.max) return false;
  const uint64_t most = state.count + required + optional;
  return most >= rule.min ||
         most + others_possible(index, rule.min + state.others.size()) >= rule.min + state.others.size();
}

bool SchemaRules::search(uint32_t index, const ObjectState& state, int& fuel) {
  if (closable(index, state)) return true;
  if (--fuel < 0) {
    reader_.refuse_here("the negated sets of keys in one object are too many to enforce");
    return false;
  }
  const ObjectRule& rule = normalizer_.object(index);
  if (facts(index).counts && state.count >= rule.max) return false;
  auto [it, fresh] = object_search_.try_emplace({index, state}, false);
  if (!fresh) return it->second;
  bool others = false, found = false;
  auto try_witness = [&](ObjectState next, FormulaId part, uint32_t witness) {
    witness &= ~state.bits;
    for (uint32_t subset = witness; !found; subset = (subset - 1) & witness) {
      next.bits = state.bits | subset;
      found = productive(with(part, rule.some, subset)) && search(index, next, fuel);
      if (subset == 0) break;
    }
  };
  for (uint32_t name : allowed_names(index, state, others))
    if (!found) try_witness(after_name(index, state, name), rule.names[name].part, rule.names[name].witness);
  if (others && !found) {
    // Two keys of a cell are alike; how many there are matters only for counts.
    for (const ObjectRule::Cell& cell : rule.cells) {
      ObjectState next = state;
      next.position = uint32_t(facts(index).placed.size());
      if (facts(index).counts) ++next.count;
      const bool useful = (cell.witness & ~state.bits) != 0 || next.count <= rule.min;
      if (!found && useful && productive(cell.part)) try_witness(next, cell.part, cell.witness);
    }
  }
  return object_search_[{index, state}] = found;
}

// others: keys that aren't names may come too.
std::vector<uint32_t> SchemaRules::allowed_names(uint32_t index, const ObjectState& state, bool& others) {
  const ObjectRule& rule = normalizer_.object(index);
  ObjectFacts& f = facts(index);
  std::vector<uint32_t> out;
  for (size_t i = state.position; i < f.placed.size(); ++i) {
    const ObjectRule::Name& name = rule.names[f.placed[i]];
    if (productive(name.part)) out.push_back(f.placed[i]);
    if (name.required) return others = false, out;
  }
  for (uint32_t i : f.unplaced)
    if (productive(rule.names[i].part) && !holds(state.used, i)) out.push_back(i);
  others = true;
  return out;
}

SchemaRules::Options& SchemaRules::options(uint32_t index, uint32_t id) {
  auto [it, fresh] = options_.try_emplace(id);
  if (!fresh) return it->second;
  const ObjectState& state = *object_states_[id];
  const ObjectRule& rule = normalizer_.object(index);
  ObjectFacts& f = facts(index);
  Options out;
  out.close = closable(index, state);
  const bool always = !f.counts && rule.some.empty();
  bool others = false;
  auto fits = [&](ObjectState next, FormulaId part, uint32_t witness) {
    if (always) return true;
    witness &= ~state.bits;
    for (uint32_t subset = witness;; subset = (subset - 1) & witness) {
      next.bits = state.bits | subset;
      if (productive(with(part, rule.some, subset)) && completable(index, next)) return true;
      if (subset == 0) return false;
    }
  };
  for (uint32_t name : allowed_names(index, state, others))
    if (fits(after_name(index, state, name), rule.names[name].part, rule.names[name].witness)) out.names.push_back(name);
  for (uint32_t c = 0; others && c < rule.cells.size(); ++c) {
    const ObjectRule::Cell& cell = rule.cells[c];
    if (!productive(cell.part)) continue;
    if (!f.not_a_name) others_possible(index, 1);
    RegexId keys = pool_.both({cell.keys, *f.not_a_name});
    if (!state.others.empty())
      keys = pool_.both({keys, pool_.negate(pool_.any_of({state.others.begin(), state.others.end()}))});
    ObjectState next = state;
    next.position = uint32_t(f.placed.size());
    if (f.counts) ++next.count;
    if (!always) next.others.emplace_back();  // one key fewer is left
    if (!fits(next, cell.part, cell.witness)) continue;
    const LexId lex = lexicon_.json_string(keys);
    if (lex != Lexicon::kDead) out.cells.emplace_back(c, lex);
  }
  return options_[id] = std::move(out);
}

void SchemaRules::expand_object(RuleNode& node, const Key& key) {
  const ObjectState& state = *object_states_[key.b];
  Options& next = options(key.a, key.b);
  if (key.place == Place::object_next) {
    if (next.close) node.read(close_brace_, RuleTable::kEnd);
    if (next.any()) node.read(comma_, object_node(Place::object_keys, key.a, state, 1));
    return;
  }
  if (key.place == Place::object_open && next.close) node.read(close_brace_, RuleTable::kEnd);
  if (!next.any()) return;
  if (key.place == Place::object_open || key.c == 1) node.read(space_, object_node(Place::object_keys, key.a, state));
  if (next.keys == 0 && !next.names.empty()) {
    ObjectFacts& f = facts(key.a);
    std::vector<bool> allowed(f.keys.size());
    for (uint32_t name : next.names) allowed[name] = true;
    std::vector<std::string_view> names;
    for (uint32_t name : f.sorted)
      if (allowed[name]) names.push_back(f.keys[name]);
    next.keys = lexicon_.sorted_literals(std::move(names));
  }
  node.read(next.keys, object_node(Place::key_read, key.a, state));
  for (const auto& [cell, lex] : next.cells) node.read(lex, object_node(Place::other_read, key.a, state, cell));
}

void SchemaRules::expand_object_value(RuleNode& node, const Key& key) {
  const ObjectRule& rule = normalizer_.object(key.a);
  const ObjectState& state = *object_states_[key.b];
  const bool is_cell = (key.c & kCell) != 0;
  const FormulaId part = is_cell ? rule.cells[key.c & ~kCell].part : rule.names[key.c].part;
  const uint32_t witness = (is_cell ? rule.cells[key.c & ~kCell].witness : rule.names[key.c].witness) & ~state.bits;
  for (uint32_t subset = witness;; subset = (subset - 1) & witness) {
    ObjectState next = state;
    next.bits |= subset;
    if (rule.some.empty() || completable(key.a, next))
      add_value(node, with(part, rule.some, subset), object_node(Place::object_next, key.a, next));
    if (subset == 0) break;
  }
}

bool SchemaRules::closable(const ArrayRule& rule, const ArrayState& state) const {
  if (state.count < rule.min || state.count > rule.max) return false;
  for (size_t j = 0; j < rule.contains.size(); ++j)
    if (state.found[j] < rule.contains[j].min) return false;
  return true;
}

std::vector<std::pair<FormulaId, SchemaRules::ArrayState>> SchemaRules::steps(uint32_t index, const ArrayState& state) {
  const ArrayRule& rule = normalizer_.array(index);
  std::vector<std::pair<FormulaId, ArrayState>> out;
  if (state.count >= rule.max) return out;
  uint64_t told_apart = std::max<uint64_t>(rule.min, rule.prefix.size());
  for (const auto& c : rule.contains) told_apart = std::max(told_apart, c.from);
  const uint64_t count = rule.max < kNoLimit ? state.count + 1 : std::min(state.count + 1, told_apart);
  for (uint32_t subset = 0; subset < (1u << rule.contains.size()); ++subset) {
    ArrayState next = state;
    next.count = count;
    bool fits = true;
    for (size_t j = 0; j < rule.contains.size(); ++j) {
      const auto& c = rule.contains[j];
      if (!((subset >> j) & 1)) continue;
      // Without an upper end, nothing is counted beyond what is needed.
      fits &= c.from <= state.count && next.found[j] < (c.max < kNoLimit ? c.max : c.min);
      ++next.found[j];
    }
    const FormulaId part = item_with(rule, state.count, subset);
    if (fits && productive(part)) out.emplace_back(part, std::move(next));
  }
  return out;
}

bool SchemaRules::completable(uint32_t index, const ArrayState& state) {
  const ArrayRule& rule = normalizer_.array(index);
  if (!rule.contains.empty()) {
    int fuel = kSearchFuel;
    return search(index, state, fuel);
  }
  if (rule.min > rule.max || state.count > rule.max) return false;
  for (uint64_t i = state.count; i < rule.min && i <= rule.prefix.size(); ++i)
    if (!productive(rule.item(i))) return false;
  return state.count >= rule.min || rule.min <= rule.prefix.size() || productive(rule.rest);
}

bool SchemaRules::search(uint32_t index, const ArrayState& state, int& fuel) {
  const ArrayRule& rule = normalizer_.array(index);
  if (closable(rule, state)) return true;
  auto [it, fresh] = array_search_.try_emplace({index, state}, false);
  if (!fresh) return it->second;
  if (--fuel < 0) {
    reader_.refuse(rule.contains[0].where, "the counts are too many to enforce");
    return false;
  }
  bool found = false;
  for (const auto& [part, next] : steps(index, state)) found = found || search(index, next, fuel);
  return array_search_[{index, state}] = found;
}

void SchemaRules::expand_array(RuleNode& node, const Key& key) {
  const ArrayRule& rule = normalizer_.array(key.a);
  const ArrayState& state = *array_states_[key.b];
  bool more = false;
  for (const auto& [part, next] : steps(key.a, state))
    more = more || (completable(key.a, next) && (!rule.unique || any_unlike(part, state.used)));
  if (key.place != Place::array_item && closable(rule, state)) node.read(close_bracket_, RuleTable::kEnd);
  if (!more) return;
  if (key.place == Place::array_next) return node.read(comma_, array_node(Place::array_item, key.a, state, 1));
  if (key.place == Place::array_open || key.c == 1) node.read(space_, array_node(Place::array_item, key.a, state));
  add_items(node, key);
}

void SchemaRules::add_items(RuleNode& node, const Key& key) {
  const ArrayRule& rule = normalizer_.array(key.a);
  const ArrayState& state = *array_states_[key.b];
  for (const auto& [part, next] : steps(key.a, state)) {
    if (!completable(key.a, next)) continue;
    if (rule.unique && rule.max > 1)
      add_scalars(node, part, array_node(Place::unique_read, key.a, next), state.used);
    else
      add_value(node, part, array_node(Place::array_next, key.a, next));
  }
}

}  // namespace unisono::grammar

#include "text/jinja_value.h"

#include <functional>

namespace unisono::text::jinja {

namespace {

constexpr size_t kTinyDict = 8;  // up to here looking through the entries is as fast as an index

Value json_text(Budget& budget, std::string_view bytes) {
  TextBuilder builder(budget);
  builder.append(bytes, true);
  return builder.finish();
}

Value from_json_at(Budget& budget, const Json& json, int depth) {
  budget.charge(Budget::kElement);
  if (depth > kMaxValueDepth) deeper(depth);
  switch (json.kind()) {
    case boost::json::kind::null: return None{};
    case boost::json::kind::bool_: return json.get_bool();
    case boost::json::kind::int64: return Int(json.get_int64());
    case boost::json::kind::uint64: return Int(json.get_uint64());
    case boost::json::kind::double_: return json.get_double();
    case boost::json::kind::string: return json_text(budget, {json.get_string().data(), json.get_string().size()});
    case boost::json::kind::array: {
      std::vector<Value> items;
      items.reserve(json.get_array().size());
      for (const Json& item : json.get_array()) items.push_back(from_json_at(budget, item, depth + 1));
      return make_sequence(SequenceKind::list, std::move(items), true);
    }
    case boost::json::kind::object: break;
  }
  Dict dict;
  dict.from_user = true;
  for (const auto& entry : json.get_object())
    dict.set(budget, json_text(budget, {entry.key().data(), entry.key().size()}),
             from_json_at(budget, entry.value(), depth + 1));
  return make_dict(std::move(dict));
}

bool equal_sequences(Budget& budget, const Sequence& left, const Sequence& right) {
  if (&left == &right) return true;
  bool comparable = (left.is_tuple() && right.is_tuple()) || (left.kind == right.kind && left.is_indexed());
  if (!comparable || left.items.size() != right.items.size()) return false;
  for (size_t i = 0; i < left.items.size(); ++i)
    if (!equal(budget, left.items[i], right.items[i])) return false;
  return true;
}

bool equal_dicts(Budget& budget, const Dict& left, const Dict& right) {
  if (&left == &right) return true;
  if (left.entries.size() != right.entries.size()) return false;
  for (const auto& [key, value] : left.entries) {
    const Value* other = right.find(budget, key);
    if (other == nullptr || !equal(budget, value, *other)) return false;
  }
  return true;
}

[[noreturn]] void no_order(const Value& left, const Value& right, std::string_view operation) {
  if (const Undefined* u = left.get<Undefined>()) fail(*u->why);
  if (const Undefined* u = right.get<Undefined>()) fail(*u->why);
  fail("'" + std::string(operation) + "' not supported between instances of '" + std::string(type_name(left)) + "' and '" +
       std::string(type_name(right)) + "'");
}

}  // namespace

std::optional<Int> Value::integer() const {
  if (const Int* value = get<Int>()) return *value;
  if (const bool* value = get<bool>()) return Int(*value);
  return std::nullopt;
}

std::optional<double> Value::number() const {
  if (const double* value = get<double>()) return *value;
  if (std::optional<Int> value = integer()) return static_cast<double>(*value);
  return std::nullopt;
}

bool Value::same(const Value& other) const {
  if (state_.index() != other.state_.index()) return false;
  if (const SequencePtr* p = get<SequencePtr>()) return *p == *other.get<SequencePtr>();
  if (const DictPtr* p = get<DictPtr>()) return *p == *other.get<DictPtr>();
  if (const Text* text = this->text())
    return text->view().data() == other.text()->view().data() && text->size() == other.text()->size();
  if (const double* number = get<double>()) return *number == *other.get<double>();
  if (std::optional<Int> number = integer()) return *number == *other.integer();
  return object() == other.object();
}

const Value* Dict::find(Budget& budget, const Value& key) const {
  std::optional<size_t> at = position(budget, key, hash_of(budget, key));
  return at ? &entries[*at].second : nullptr;
}

const Value* Dict::find(std::string_view key) const {
  auto is_key = [&](size_t at) {
    const Text* text = entries[at].first.text();
    return text != nullptr && text->view() == key;
  };
  if (entries.size() <= kTinyDict) {
    for (size_t i = 0; i < entries.size(); ++i)
      if (is_key(i)) return &entries[i].second;
    return nullptr;
  }
  auto [begin, end] = index_.equal_range(std::hash<std::string_view>{}(key));
  for (auto i = begin; i != end; ++i)
    if (is_key(i->second)) return &entries[i->second].second;
  return nullptr;
}

std::optional<size_t> Dict::position(Budget& budget, const Value& key, size_t hash) const {
  if (entries.size() <= kTinyDict) {
    for (size_t i = 0; i < entries.size(); ++i)
      if (equal(budget, entries[i].first, key)) return i;
    return std::nullopt;
  }
  auto [begin, end] = index_.equal_range(hash);
  for (auto i = begin; i != end; ++i)
    if (equal(budget, entries[i->second].first, key)) return i->second;
  return std::nullopt;
}

void Dict::set(Budget& budget, Value key, Value value) {
  size_t hash = hash_of(budget, key);
  if (std::optional<size_t> at = position(budget, key, hash)) {
    entries[*at].second = std::move(value);
    return;
  }
  entries.emplace_back(std::move(key), std::move(value));
  if (entries.size() == kTinyDict + 1) {
    for (size_t i = 0; i < entries.size(); ++i) index_.emplace(hash_of(budget, entries[i].first), i);
  } else if (entries.size() > kTinyDict) {
    index_.emplace(hash, entries.size() - 1);
  }
}

int depth_of(const Value& value) {
  if (const Sequence* items = value.sequence()) return items->depth;
  if (const Dict* dict = value.dict()) return dict->depth;
  if (const Object* object = value.object()) return object->depth;
  return 0;
}

int deeper(int depth) {
  if (depth >= kMaxValueDepth) fail("Lists and dicts nest deeper than " + std::to_string(kMaxValueDepth) + " levels.");
  return depth + 1;
}

Value Object::call(Machine&, Args) { fail("'" + std::string(type_name()) + "' object is not callable"); }
std::optional<Value> Object::attribute(Machine&, std::string_view) { return std::nullopt; }
std::string Object::print() const {
  fail("A value of type '" + std::string(type_name()) + "' has no text that could be printed.");
}

Value make_sequence(SequenceKind kind, std::vector<Value> items, bool from_user) {
  auto sequence = std::make_shared<Sequence>();
  sequence->kind = kind;
  sequence->from_user = from_user;
  int depth = 0;
  for (const Value& item : items) depth = std::max(depth, depth_of(item));
  sequence->depth = deeper(depth);
  sequence->items = std::move(items);
  return SequencePtr(std::move(sequence));
}

Value make_dict(Dict dict) {
  int depth = 0;
  for (const auto& [key, value] : dict.entries) depth = std::max({depth, depth_of(key), depth_of(value)});
  dict.depth = deeper(depth);
  return DictPtr(std::make_shared<const Dict>(std::move(dict)));
}

Value undefined(std::string why) { return Undefined{std::make_shared<const std::string>(std::move(why))}; }

Value from_json(Budget& budget, const Json& json) { return from_json_at(budget, json, 1); }

bool truth(const Value& value) {
  if (const bool* b = value.get<bool>()) return *b;
  if (const Int* i = value.get<Int>()) return *i != 0;
  if (const double* d = value.get<double>()) return *d != 0;
  if (const Text* text = value.text()) return !text->empty();
  if (const Sequence* s = value.sequence()) return s->kind == SequenceKind::iterator || !s->items.empty();
  if (const Dict* dict = value.dict()) return !dict->entries.empty();
  return value.object() != nullptr;
}

std::string_view type_name(const Value& value) {
  if (value.is<None>()) return "NoneType";
  if (value.is<bool>()) return "bool";
  if (value.is<Int>()) return "int";
  if (value.is<double>()) return "float";
  if (const Text* text = value.text()) return text->is_markup() ? "Markup" : "str";
  if (const Sequence* s = value.sequence()) {
    switch (s->kind) {
      case SequenceKind::list: return "list";
      case SequenceKind::tuple: return "tuple";
      case SequenceKind::group: return "_GroupTuple";
      case SequenceKind::range: return "range";
      case SequenceKind::iterator: return "generator";
      case SequenceKind::keys: return "dict_keys";
      case SequenceKind::values: return "dict_values";
      case SequenceKind::items: return "dict_items";
    }
  }
  if (value.dict() != nullptr) return "dict";
  if (const Object* object = value.object()) return object->type_name();
  return "Undefined";
}

bool equal(Budget& budget, const Value& left, const Value& right) {
  budget.charge(Budget::kNode);
  std::optional<double> x = left.number(), y = right.number();
  if (x && y) {
    std::optional<Int> i = left.integer(), j = right.integer();
    return i && j ? *i == *j : *x == *y;
  }
  if (const Text* text = left.text()) {
    if (right.text() == nullptr || text->size() != right.text()->size()) return false;
    budget.charge(text->size() / 8);
    return text->view() == right.text()->view();
  }
  if (const Sequence* s = left.sequence())
    return right.sequence() != nullptr && equal_sequences(budget, *s, *right.sequence());
  if (const Dict* dict = left.dict()) return right.dict() != nullptr && equal_dicts(budget, *dict, *right.dict());
  if (Object* object = left.object()) return object == right.object();
  return (left.is<None>() && right.is<None>()) || (left.is<Undefined>() && right.is<Undefined>());
}

bool less(Budget& budget, const Value& left, const Value& right, std::string_view operation) {
  budget.charge(Budget::kNode);
  std::optional<double> x = left.number(), y = right.number();
  if (x && y) {
    std::optional<Int> i = left.integer(), j = right.integer();
    return i && j ? *i < *j : *x < *y;
  }
  if (left.text() != nullptr && right.text() != nullptr) {
    budget.charge(std::min(left.text()->size(), right.text()->size()) / 8);
    return left.text()->view() < right.text()->view();  // bytes of UTF-8 have the order of code points
  }
  const Sequence *s = left.sequence(), *t = right.sequence();
  bool lists = s != nullptr && t != nullptr && s->kind == SequenceKind::list && t->kind == SequenceKind::list;
  bool tuples = s != nullptr && t != nullptr && s->is_tuple() && t->is_tuple();
  if (!lists && !tuples) no_order(left, right, operation);
  for (size_t i = 0; i < s->items.size() && i < t->items.size(); ++i)
    if (!equal(budget, s->items[i], t->items[i])) return less(budget, s->items[i], t->items[i], operation);
  return s->items.size() < t->items.size();
}

size_t hash_of(Budget& budget, const Value& value) {
  budget.charge(Budget::kNode);
  if (const Text* text = value.text()) {
    budget.charge(text->size() / 8);
    return std::hash<std::string_view>{}(text->view());
  }
  if (std::optional<double> x = value.number()) return std::hash<double>{}(*x);
  if (const Sequence* s = value.sequence(); s != nullptr && s->is_tuple()) {
    size_t hash = s->items.size();
    for (const Value& item : s->items) hash = hash * 1000003 ^ hash_of(budget, item);
    return hash;
  }
  if (value.dict() != nullptr || (value.sequence() != nullptr && value.sequence()->kind == SequenceKind::list))
    fail("unhashable type: '" + std::string(type_name(value)) + "'");
  if (Object* object = value.object()) return std::hash<Object*>{}(object);
  return 0;
}

}  // namespace unisono::text::jinja

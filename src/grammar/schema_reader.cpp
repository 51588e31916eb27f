#include "grammar/schema_reader.h"

#include <algorithm>
#include <array>

#include "grammar/uri.h"

namespace unisono::grammar {

namespace {

constexpr int kMaxDepth = 200;

struct KnownDraft {
  std::string_view uri;
  Draft draft;
};
constexpr std::array<KnownDraft, 5> kDrafts{{{"json-schema.org/draft-04/schema", Draft::draft4},
                                             {"json-schema.org/draft-06/schema", Draft::draft6},
                                             {"json-schema.org/draft-07/schema", Draft::draft7},
                                             {"json-schema.org/draft/2019-09/schema", Draft::draft2019},
                                             {"json-schema.org/draft/2020-12/schema", Draft::draft2020}}};

std::optional<Draft> named_draft(std::string_view uri) {
  for (std::string_view prefix : {"http://", "https://"})
    if (uri.starts_with(prefix)) uri.remove_prefix(prefix.size());
  while (uri.ends_with('#')) uri.remove_suffix(1);
  for (const KnownDraft& known : kDrafts)
    if (uri == known.uri) return known.draft;
  return std::nullopt;
}

std::string_view view(const boost::json::string& s) { return {s.data(), s.size()}; }

// Where a schema holds schemas: one, a list, or a map of them.
constexpr std::string_view kOne[] = {"additionalItems",
                                     "additionalProperties",
                                     "contains",
                                     "contentSchema",
                                     "else",
                                     "if",
                                     "items",
                                     "not",
                                     "propertyNames",
                                     "then",
                                     "unevaluatedItems",
                                     "unevaluatedProperties"};
constexpr std::string_view kLists[] = {"allOf", "anyOf", "oneOf", "prefixItems", "items"};
constexpr std::string_view kMaps[] = {"$defs",     "definitions", "dependencies", "dependentSchemas", "patternProperties",
                                      "properties"};

}  // namespace

SchemaReader::SchemaReader(const Json& document, const JsonSchemaOptions& options, FormulaTable& formulas, RegexPool& pool)
    : document_(document), options_(options), formulas_(formulas), pool_(pool), draft_(options.default_draft) {
  wheres_.emplace_back();
  if (const auto* object = document.if_object()) {
    const auto* name = object->if_contains("$schema");
    if (name && name->is_string()) {
      const std::string_view uri = view(name->get_string());
      if (auto draft = named_draft(uri))
        draft_ = *draft;
      else if (!uri.ends_with("json-schema.org/schema#") && !uri.ends_with("json-schema.org/schema"))
        error_ = Error{"`$schema` names a dialect that isn't known; drafts 4, 6, 7, 2019-09 and 2020-12 are", "/$schema"};
    }
  }
  resources_.emplace("", Place{&document, "", ""});
  index(document, "", "", 0);
}

void SchemaReader::refuse(uint32_t where, std::string reason) {
  if (!error_)
    error_ =
        Error{"at " + (wheres_[where].empty() ? std::string("the top") : wheres_[where]) + ": " + reason, wheres_[where]};
}

void SchemaReader::refuse_here(std::string reason) {
  if (!error_) error_ = Error{"at " + (pointer_.empty() ? std::string("the top") : pointer_) + ": " + reason, pointer_};
}

uint32_t SchemaReader::here(std::string_view keyword) {
  wheres_.push_back(pointer_ + "/" + std::string(keyword));
  return uint32_t(wheres_.size() - 1);
}

void SchemaReader::index(const Json& schema, std::string base, std::string pointer, int depth) {
  const auto* object = schema.if_object();
  if (!object || depth > kMaxDepth) return;
  const bool alone = !since(Draft::draft2019) && object->contains("$ref");  // siblings of $ref say nothing there
  const auto* id = alone ? nullptr : object->if_contains(draft_ == Draft::draft4 ? "id" : "$id");
  if (id && id->is_string() && !id->get_string().empty()) {
    const std::string_view text = view(id->get_string());
    if (text[0] == '#') {
      anchors_.emplace(base + std::string(text), Place{&schema, base, pointer});
    } else {
      base = resolve_uri(base, text.substr(0, text.find('#')));
      resources_.emplace(base, Place{&schema, base, pointer});
    }
  }
  for (std::string_view name : {"$anchor", "$dynamicAnchor"}) {
    const auto* anchor = object->if_contains(name);
    if (!anchor || !anchor->is_string() || !since(Draft::draft2019)) continue;
    anchors_.emplace(base + "#" + std::string(view(anchor->get_string())), Place{&schema, base, pointer});
    if (name == "$dynamicAnchor") ++dynamic_anchors_[std::string(view(anchor->get_string()))];
  }
  if (const auto* recursive = object->if_contains("$recursiveAnchor")) dynamic_anchors_[""] += *recursive == true;
  index_children(*object, base, pointer, depth);
}

void SchemaReader::index_children(const JsonObject& object, const std::string& base, const std::string& pointer,
                                  int depth) {
  for (const auto& member : object) {
    const std::string_view key(member.key().data(), member.key().size());
    const Json& value = member.value();
    if (value.is_object() && std::find(std::begin(kMaps), std::end(kMaps), key) != std::end(kMaps)) {
      for (const auto& inner : value.get_object())
        if (inner.value().is_object())
          index(inner.value(), base,
                pointer + "/" + std::string(key) + "/" + escape_pointer({inner.key().data(), inner.key().size()}),
                depth + 1);
    } else if (value.is_array() && std::find(std::begin(kLists), std::end(kLists), key) != std::end(kLists)) {
      size_t i = 0;
      for (const Json& inner : value.get_array())
        index(inner, base, pointer + "/" + std::string(key) + "/" + std::to_string(i++), depth + 1);
    } else if (value.is_object() && std::find(std::begin(kOne), std::end(kOne), key) != std::end(kOne)) {
      index(value, base, pointer + "/" + std::string(key), depth + 1);
    }
  }
}

std::optional<SchemaReader::Place> SchemaReader::walk(Place place, std::string_view pointer) {
  while (!pointer.empty()) {
    if (pointer[0] != '/') return std::nullopt;
    const size_t end = std::min(pointer.find('/', 1), pointer.size());
    const std::string step = unescape_pointer(pointer.substr(1, end - 1));
    pointer.remove_prefix(end);
    if (const auto* object = place.schema->if_object()) {
      place.schema = object->if_contains(step);
    } else if (const auto* array = place.schema->if_array()) {
      size_t i = 0;
      for (char c : step) i = c >= '0' && c <= '9' && i < array->size() ? i * 10 + size_t(c - '0') : array->size();
      place.schema = !step.empty() && i < array->size() ? &(*array)[i] : nullptr;
    } else {
      return std::nullopt;
    }
    if (!place.schema) return std::nullopt;
    place.pointer += "/" + escape_pointer(step);
    const auto* inner = place.schema->if_object();
    const auto* id = inner ? inner->if_contains(draft_ == Draft::draft4 ? "id" : "$id") : nullptr;
    if (id && id->is_string() && (since(Draft::draft2019) || !inner->contains("$ref"))) {
      const std::string_view text = view(id->get_string());
      if (!text.empty() && text[0] != '#') place.base = resolve_uri(place.base, text.substr(0, text.find('#')));
    }
  }
  return place;
}

std::optional<SchemaReader::Place> SchemaReader::find(const std::string& base, std::string_view ref) {
  const size_t hash = ref.find('#');
  const std::string_view before = ref.substr(0, hash),
                         fragment = hash == std::string_view::npos ? "" : ref.substr(hash + 1);
  const std::string resource = before.empty() ? base : resolve_uri(base, before);
  if (!fragment.empty() && fragment[0] != '/') {
    auto anchor = anchors_.find(resource + "#" + unescape_percent(fragment));
    if (anchor == anchors_.end()) return std::nullopt;
    return anchor->second;
  }
  auto it = resources_.find(resource);
  if (it == resources_.end()) return std::nullopt;
  return walk(it->second, unescape_percent(fragment));
}

FormulaId SchemaReader::root() {
  if (error_) return FormulaTable::kNever;
  base_ = "";
  pointer_ = "";
  return read(document_);
}

FormulaId SchemaReader::target(uint32_t number) {
  if (references_[number].formula) return *references_[number].formula;
  const Place place = references_[number].place;
  std::string base = std::exchange(base_, place.base), pointer = std::exchange(pointer_, place.pointer);
  const FormulaId out = read(*place.schema);
  if (!error_) references_[number].formula = out;
  base_ = std::move(base);
  pointer_ = std::move(pointer);
  return out;
}

FormulaId SchemaReader::reference(std::string_view ref, std::string_view keyword) {
  auto [it, fresh] = reference_index_.try_emplace({base_, std::string(ref)}, uint32_t(references_.size()));
  if (fresh) {
    auto place = find(base_, ref);
    if (!place) {
      refuse(here(keyword), "`" + std::string(ref) + "` isn't in this document, and nothing else is looked up");
      reference_index_.erase(it);
      return FormulaTable::kNever;
    }
    references_.push_back({std::move(*place), std::nullopt});
  }
  Formula f;
  f.op = Formula::Op::reference;
  f.n = it->second;
  f.where = here(keyword);
  return formulas_.add(std::move(f));
}

FormulaId SchemaReader::child(const Json& schema, std::string_view step) {
  const size_t before = pointer_.size();
  pointer_ += '/';
  pointer_ += escape_pointer(step);
  const FormulaId out = read(schema);
  pointer_.resize(before);
  return out;
}

FormulaId SchemaReader::child(const Json& schema, std::string_view keyword, std::string_view step) {
  const size_t before = pointer_.size();
  pointer_ += '/';
  pointer_ += keyword;
  const FormulaId out = child(schema, step);
  pointer_.resize(before);
  return out;
}

std::vector<FormulaId> SchemaReader::children(const Json& list, std::string_view keyword) {
  std::vector<FormulaId> out;
  const auto* array = list.if_array();
  if (!array || array->empty()) {
    refuse(here(keyword), "it must be an array of schemas that isn't empty");
    return out;
  }
  for (const Json& schema : *array) out.push_back(child(schema, keyword, std::to_string(out.size())));
  return out;
}

FormulaId SchemaReader::read(const Json& schema) {
  if (error_) return FormulaTable::kNever;
  if (schema.is_bool()) return schema.get_bool() ? FormulaTable::kAlways : FormulaTable::kNever;
  const auto* object = schema.if_object();
  if (!object) {
    refuse_here("a schema must be an object, true or false");
    return FormulaTable::kNever;
  }
  auto it = known_.find(&schema);
  if (it != known_.end()) return it->second;
  if (++depth_ > kMaxDepth || formulas_.exhausted())
    refuse_here(depth_ > kMaxDepth ? "schemas are nested deeper than 200" : "the schema is too large");
  std::string base = base_;
  const FormulaId out = error_ ? FormulaTable::kNever : read_object(*object);
  base_ = std::move(base);
  --depth_;
  if (!error_) known_.emplace(&schema, out);
  return out;
}

FormulaId SchemaReader::read_object(const JsonObject& o) {
  std::vector<FormulaId> parts;
  const auto* ref = o.if_contains("$ref");
  if (ref && ref->is_string() && !since(Draft::draft2019)) return reference(view(ref->get_string()), "$ref");
  const auto* id = o.if_contains(draft_ == Draft::draft4 ? "id" : "$id");
  if (id && id->is_string()) {
    const std::string_view text = view(id->get_string());
    if (!text.empty() && text[0] != '#') base_ = resolve_uri(base_, text.substr(0, text.find('#')));
  }
  if (const auto* dialect = o.if_contains("$schema"); dialect && !pointer_.empty() && dialect->is_string()) {
    // Within a document it may only stand where a resource of its own begins; elsewhere it says nothing.
    const auto draft = named_draft(view(dialect->get_string()));
    if (id && since(Draft::draft2019) && (!draft || *draft != draft_))
      refuse(here("$schema"), "a part of the schema in another dialect can't be enforced");
  }
  read_references(o, parts);
  read_scalars(o, parts);
  read_arrays(o, parts);
  read_objects(o, parts);
  read_logic(o, parts);
  return formulas_.all(std::move(parts));
}

void SchemaReader::read_references(const JsonObject& o, std::vector<FormulaId>& parts) {
  if (const auto* ref = o.if_contains("$ref"); ref) {
    if (ref->is_string())
      parts.push_back(reference(view(ref->get_string()), "$ref"));
    else
      refuse(here("$ref"), "it must be a string");
  }
  const std::string_view keyword = draft_ == Draft::draft2019 ? "$recursiveRef" : "$dynamicRef";
  const auto* dynamic = since(Draft::draft2019) ? o.if_contains(keyword) : nullptr;
  if (!dynamic) return;
  if (!dynamic->is_string()) return refuse(here(keyword), "it must be a string");
  const std::string_view text = view(dynamic->get_string());
  // With one anchor of the name at most, where it leads doesn't depend on the way here.
  const std::string name(text.substr(std::min(text.find('#') + 1, text.size())));
  auto anchors = dynamic_anchors_.find(name);
  const int several = draft_ == Draft::draft2019 ? 0 : 1;
  if (anchors != dynamic_anchors_.end() && anchors->second > several && (several == 1 || resources_.size() > 1))
    return refuse(here(keyword), "a reference that depends on the path by which it was reached can't be enforced");
  parts.push_back(reference(text, keyword));
}

void SchemaReader::read_logic(const JsonObject& o, std::vector<FormulaId>& parts) {
  if (const auto* all = o.if_contains("allOf"))
    for (FormulaId f : children(*all, "allOf")) parts.push_back(f);
  if (const auto* any = o.if_contains("anyOf")) parts.push_back(formulas_.any(children(*any, "anyOf")));
  if (const auto* one = o.if_contains("oneOf")) {
    Formula f;
    f.op = Formula::Op::one;
    f.where = here("oneOf");
    f.parts = children(*one, "oneOf");
    if (f.parts.size() > 200) return refuse(f.where, "more than 200 alternatives can't be told apart");
    parts.push_back(f.parts.size() == 1 ? f.parts[0] : formulas_.add(std::move(f)));
  }
  if (const auto* no = o.if_contains("not")) parts.push_back(formulas_.negate(child(*no, "not")));
  const auto* condition = since(Draft::draft7) ? o.if_contains("if") : nullptr;
  const auto *then = o.if_contains("then"), *otherwise = o.if_contains("else");
  if (!condition || (!then && !otherwise)) return;
  const FormulaId f = child(*condition, "if");
  const FormulaId yes = then ? child(*then, "then") : FormulaTable::kAlways;
  const FormulaId no = otherwise ? child(*otherwise, "else") : FormulaTable::kAlways;
  parts.push_back(formulas_.any({formulas_.all({f, yes}), formulas_.all({formulas_.negate(f), no})}));
}

}  // namespace unisono::grammar

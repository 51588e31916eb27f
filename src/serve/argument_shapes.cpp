#include "serve/argument_shapes.h"

#include <algorithm>
#include <optional>

namespace unisono::serve {

namespace {

using grammar::Shape;

constexpr int kMaxNesting = 12;
constexpr size_t kMaxParts = 20'000;  // of all shapes and copied definitions of one tool

// Keywords that say nothing about which values there are.
constexpr std::string_view kAnnotations[] = {"title",      "description", "default",   "examples",
                                             "deprecated", "readOnly",    "writeOnly", "$comment",
                                             "$defs",      "definitions", "$schema"};
constexpr std::string_view kOfObjects[] = {"type", "properties", "required", "additionalProperties"};
constexpr std::string_view kOfArrays[] = {"type", "items"};

size_t parts_of(const Shape& shape) {
  size_t n = 1;
  for (const Shape& part : shape.parts) n += parts_of(part);
  return n;
}
size_t parts_of(const Json& json) {
  size_t n = 1;
  if (json.is_array())
    for (const Json& item : json.get_array()) n += parts_of(item);
  if (json.is_object())
    for (const auto& entry : json.get_object()) n += parts_of(entry.value());
  return n;
}

std::string_view key_of(const boost::json::key_value_pair& member) { return {member.key().data(), member.key().size()}; }
bool is_annotation(std::string_view key) { return std::ranges::find(kAnnotations, key) != std::end(kAnnotations); }

// Follows local references; null: one leads nowhere or too far, or to what isn't an object. alone: no reference on the
// way has a keyword beside it that says something about the value.
const JsonObject* resolved(const Json& schema, const JsonObject& root, bool& alone) {
  const Json* at = &schema;
  alone = true;
  for (int hops = 0; at != nullptr && at->is_object() && hops < kMaxNesting; hops++) {
    const Json* ref = at->get_object().if_contains("$ref");
    if (!ref) return at->if_object();
    for (const auto& entry : at->get_object()) alone &= key_of(entry) == "$ref" || is_annotation(key_of(entry));
    const std::string path = ref->is_string() ? std::string(ref->get_string()) : "";
    const size_t cut = path.rfind('/');
    const bool local = path.starts_with("#/$defs/") || path.starts_with("#/definitions/");
    const Json* group = local ? root.if_contains(path.substr(2, cut - 2)) : nullptr;
    at = group && group->is_object() ? group->get_object().if_contains(path.substr(cut + 1)) : nullptr;
  }
  return nullptr;
}

class Maker {
 public:
  Maker(const ToolSyntax& syntax, const Tool& tool) : syntax_(syntax), tool_(tool) {}

  Result<Shape> run() {
    if (syntax_.values == ToolSyntax::Values::bare) return object(tool_.parameters, "", 0);
    return parameters();
  }

  // A string without further conditions, or with a list of its values.
  static bool is_text(const JsonObject& schema) {
    const Json* values = schema.if_contains("enum");
    const Json* type = schema.if_contains("type");
    if (values)
      return values->is_array() && !values->get_array().empty() &&
             std::ranges::all_of(values->get_array(), [](const Json& v) { return v.is_string(); });
    if (const Json* value = schema.if_contains("const")) return value->is_string();
    return type && *type == "string";
  }

 private:
  Error refuse(const std::string& pointer, const std::string& what) const {
    return Error{"The model's syntax for calls (" + std::string(syntax_.name) + ") can't hold " + what +
                     "; simplify the schema, or start the server with --tool-syntax generic.",
                 tool_.where + pointer};
  }

  // Nothing but these keywords and annotations.
  Result<void> only(const JsonObject& schema, std::span<const std::string_view> known, const std::string& pointer) const {
    for (const auto& entry : schema) {
      const std::string_view key = key_of(entry);
      if (std::ranges::find(known, key) == known.end() && !is_annotation(key))
        return refuse(pointer + "/" + std::string(key), "the keyword `" + std::string(key) + "` here");
    }
    return {};
  }

  Result<const JsonObject*> resolve(const Json& schema, const std::string& pointer, bool& alone) const {
    if (const JsonObject* found = resolved(schema, tool_.parameters, alone)) return found;
    if (!schema.is_object()) return refuse(pointer, "a schema that isn't an object");
    return refuse(pointer + "/$ref", "this reference");
  }

  // References and optional keys may ask for copies of copies.
  Result<void> spend(size_t parts, const std::string& pointer) {
    spent_ += parts;
    if (spent_ > kMaxParts) return refuse(pointer, "a schema of more than 20000 parts, references followed and optional keys counted in each order");
    return {};
  }

  // Of a string schema: the values it lists, that `type`, `enum` and `const` all allow; nothing: it lists none.
  static std::optional<std::vector<std::string>> texts_of(const JsonObject& schema) {
    const Json *values = schema.if_contains("enum"), *only = schema.if_contains("const"), *type = schema.if_contains("type");
    if (!values && !only) return std::nullopt;
    std::vector<std::string> out;
    const bool string = !type || *type == "string" ||
                        (type->is_array() && std::ranges::find(type->get_array(), Json("string")) != type->get_array().end());
    if (!string) return out;
    if (!values) return out = {std::string(only->get_string())};
    for (const Json& value : values->get_array())
      if (!only || *only == value) out.emplace_back(value.get_string());
    return out;
  }

  // Text up to `end`, of a string schema.
  Result<Shape> text(const JsonObject& schema, std::string_view end, const std::string& pointer) const {
    static constexpr std::string_view kKnown[] = {"type", "enum", "const"};
    if (auto done = only(schema, kKnown, pointer); !done) return done.error();
    std::optional<std::vector<std::string>> texts = texts_of(schema);
    if (!texts) return Shape::until(std::string(end), {});
    if (texts->empty()) return refuse(pointer, "a value that its own `type`, `enum` and `const` rule out");
    for (std::string& value : *texts) {
      if (value.find(end) != value.npos) return refuse(pointer, "a value with `" + std::string(end) + "` in it");
      value += end;
    }
    return Shape::one_of(*std::move(texts));
  }

  Result<Shape> value(const Json& given, const std::string& pointer, int depth) {
    if (depth > kMaxNesting) return refuse(pointer, "schemas nested so deep");
    if (auto done = spend(1, pointer); !done) return done.error();
    bool alone = true;
    auto found = resolve(given, pointer, alone);
    if (!found) return found.error();
    if (!alone) return refuse(pointer + "/$ref", "keywords beside a reference");
    const JsonObject& schema = **found;
    for (const char* either : {"anyOf", "oneOf"}) {
      const Json* ways = schema.if_contains(either);
      if (!ways || !ways->is_array() || ways->get_array().empty()) continue;
      const std::string_view known[] = {either};
      if (auto done = only(schema, known, pointer); !done) return done.error();
      std::vector<Shape> shapes;
      for (size_t i = 0; i < ways->get_array().size(); i++) {
        auto one = value(ways->get_array()[i], pointer + "/" + either + "/" + std::to_string(i), depth + 1);
        if (!one) return one;
        shapes.push_back(*std::move(one));
      }
      return Shape::choice(std::move(shapes));
    }
    const Json* type = schema.if_contains("type");
    if (is_text(schema)) {
      auto inner = text(schema, syntax_.quote, pointer);
      if (!inner) return inner;
      return Shape::sequence(Shape::text(std::string(syntax_.quote)), *std::move(inner));
    }
    if (!type || !type->is_string()) return refuse(pointer, "a value without one type");
    if (*type == "object") return object(schema, pointer, depth + 1);
    if (*type == "array") return array(schema, pointer, depth + 1);
    return Shape::json(schema, tool_.where + pointer);  // numbers, true, false and null stand as in JSON
  }

  Result<Shape> array(const JsonObject& schema, const std::string& pointer, int depth) {
    if (auto done = only(schema, kOfArrays, pointer); !done) return done.error();
    const Json* items = schema.if_contains("items");
    if (!items) return refuse(pointer, "an array without `items`");
    auto item = value(*items, pointer + "/items", depth);
    if (!item) return item;
    return Shape::sequence(
        {Shape::text("["), Shape::optional(Shape::listed(*std::move(item), Shape::text(","))), Shape::text("]")});
  }

  struct Member {
    std::string key{};
    Shape value{};  // with all that stands around key and value, but no comma
    bool required = false;
  };

  Result<std::vector<Member>> members(const JsonObject& schema, const std::string& pointer, int depth) {
    if (auto done = only(schema, kOfObjects, pointer); !done) return done.error();
    const Json* further = schema.if_contains("additionalProperties");
    if (further && !further->is_bool()) return refuse(pointer + "/additionalProperties", "further keys of a schema");
    const Json* properties = schema.if_contains("properties");
    std::vector<Member> out;
    if (properties && properties->is_object())
      for (const auto& entry : properties->get_object()) {
        const std::string key(entry.key());
        const std::string at = pointer + "/properties/" + key;
        if (key.empty() || key.find_first_of(":{}[],<>\"\n") != key.npos) return refuse(at, "this key");
        auto shape = syntax_.values == ToolSyntax::Values::bare ? bare_member(key, entry.value(), at, depth)
                                                                : parameter(key, entry.value(), at);
        if (!shape) return shape.error();
        out.push_back({key, *std::move(shape)});
      }
    if (const Json* required = schema.if_contains("required"); required && required->is_array())
      for (const Json& name : required->get_array()) {
        const auto found = std::ranges::find_if(out, [&](const Member& m) { return name.is_string() && std::string_view(name.get_string()) == m.key; });
        if (found == out.end()) return refuse(pointer + "/required", "a key that isn't among `properties`");
        found->required = true;
      }
    return out;
  }

  Result<Shape> bare_member(const std::string& key, const Json& schema, const std::string& pointer, int depth) {
    auto shape = value(schema, pointer, depth + 1);
    if (!shape) return shape;
    return Shape::sequence(Shape::text(key + ":"), *std::move(shape));
  }

  Result<Shape> object(const JsonObject& schema, const std::string& pointer, int depth) {
    auto found = members(schema, pointer, depth);
    if (!found) return found.error();
    std::vector<Member>& all = *found;
    std::ranges::sort(all, {}, &Member::key);  // as the templates of these families write them
    // What comes first has no comma before it: one way for each member that may be the first.
    size_t way = 0;
    for (const Member& member : all) way += parts_of(member.value) + 2;
    for (const Member& member : all) {
      if (auto done = spend(way, pointer); !done) return done.error();
      if (member.required) break;
    }
    const auto rest = [&](size_t from) {
      std::vector<Shape> parts;
      for (size_t i = from; i < all.size(); i++) {
        Shape part = Shape::sequence(Shape::text(","), all[i].value);
        parts.push_back(all[i].required ? std::move(part) : Shape::optional(std::move(part)));
      }
      return Shape::sequence(std::move(parts));
    };
    std::vector<Shape> ways;
    bool may_be_empty = true;
    for (size_t i = 0; i < all.size() && may_be_empty; i++) {
      ways.push_back(Shape::sequence(all[i].value, rest(i + 1)));
      may_be_empty = !all[i].required;
    }
    if (may_be_empty) ways.push_back(Shape::sequence({}));
    return Shape::sequence(Shape::text("{"), Shape::choice(std::move(ways)), Shape::text("}"));
  }

  Result<Shape> parameter(const std::string& key, const Json& given, const std::string& pointer) {
    const std::string begin = std::string(syntax_.parameter_begin) + key + std::string(syntax_.parameter_middle);
    bool alone = true;
    auto found = resolve(given, pointer, alone);
    if (!found) return found.error();
    if (is_text(**found)) {
      if (!alone) return refuse(pointer + "/$ref", "keywords beside a reference");
      auto inner = text(**found, syntax_.parameter_end, pointer);
      if (!inner) return inner;
      return Shape::sequence(Shape::text(begin), *std::move(inner));
    }
    // As JSON; references lead into the whole schema.
    JsonObject schema = given.is_object() ? given.get_object() : JsonObject();
    for (const char* group : {"$defs", "definitions"})
      if (const Json* defs = tool_.parameters.if_contains(group); defs && !schema.contains(group)) {
        if (auto done = spend(parts_of(*defs), pointer); !done) return done.error();
        schema[group] = *defs;
      }
    return Shape::sequence(Shape::text(begin),
                            Shape::json(given.is_object() ? Json(schema) : given, tool_.where + pointer),
                            Shape::text(std::string(syntax_.parameter_end)));
  }

  Result<Shape> parameters() {
    auto found = members(tool_.parameters, "", 0);
    if (!found) return found.error();
    std::vector<Shape> parts;
    for (Member& member : *found)
      parts.push_back(member.required ? std::move(member.value) : Shape::optional(std::move(member.value)));
    return Shape::sequence(std::move(parts));
  }

  const ToolSyntax& syntax_;
  const Tool& tool_;
  size_t spent_ = 0;
};

}  // namespace

Result<Shape> argument_shape(const ToolSyntax& syntax, const Tool& tool) { return Maker(syntax, tool).run(); }

bool is_bare_text(const JsonObject& parameters, std::string_view key) {
  const Json* properties = parameters.if_contains("properties");
  const Json* schema = properties && properties->is_object() ? properties->get_object().if_contains(key) : nullptr;
  bool alone = true;
  const JsonObject* found = schema ? resolved(*schema, parameters, alone) : nullptr;
  return found && Maker::is_text(*found);
}

}  // namespace unisono::serve

#include "serve/constraints.h"

#include <algorithm>

#include "serve/structural_tag.h"

namespace unisono::serve {

namespace {

using grammar::Shape;

constexpr size_t kKept = 64;  // compiled grammars, with the masks learnt while matching

Shape any_object() { return Shape::json(JsonObject{{"type", "object"}}); }

// {"type": "text" | "json_object" | "json_schema" | "structural_tag", "json_schema": {"name", "schema", "strict",
// "description"}}
std::optional<ConstraintCall> read_response_format(Fields& fields) {
  const JsonObject* format = fields.object("response_format");
  if (!format) return {};
  Fields inner(*format, "response_format.");
  std::optional<ConstraintCall> call;
  const auto type = inner.needed_string("type");
  if (type == "json_object") {
    call = ConstraintCall{.shape = any_object(), .field = "response_format"};
  } else if (type == "json_schema") {
    if (inner.required("json_schema"))
      if (const JsonObject* described = inner.object("json_schema")) {
        Fields schema(*described, "response_format.json_schema.");
        static constexpr std::string_view kNoEffect[] = {"name", "description"};
        schema.ignore(kNoEffect);
        schema.boolean("strict");  // every keyword is enforced or refused, asked for or not
        if (const Json* value = schema.required("schema"))
          call = ConstraintCall{.shape = Shape::json(*value), .field = "response_format.json_schema.schema"};
        if (const auto error = schema.finish()) fields.fail(*error);
      }
  } else if (type == "structural_tag") {
    call = ConstraintCall{.shape = read_structural_tag(inner), .field = "response_format"};
  } else if (type && *type != "text") {
    inner.fail(
        "type", "unsupported_value",
        "'response_format.type' must be text, json_object, json_schema or structural_tag, not " + shown(Json(*type)) + ".");
  }
  if (const auto error = inner.finish()) fields.fail(*error);
  return call;
}

// vLLM takes a schema and a structural tag as an object or as its text.
std::optional<Json> value_or_text(Fields& fields, std::string_view name) {
  const Json* value = fields.any(name);
  if (!value || !value->is_string()) return value ? std::optional(*value) : std::nullopt;
  auto parsed = parse_json(value->get_string());
  if (parsed.ok()) return *std::move(parsed);
  fields.fail(name, "invalid_value",
              "'" + fields.full_name(name) + "' is a string, but no JSON: " + parsed.error().message);
  return {};
}

std::optional<Shape> read_tag_text(Fields& fields) {
  const auto tag = value_or_text(fields, "structural_tag");
  if (!tag) return {};
  const std::string path = fields.full_name("structural_tag");
  if (!tag->is_object()) {
    fields.fail("structural_tag", "invalid_type", "'" + path + "' must be an object or its text, not " + shown(*tag) + ".");
    return {};
  }
  Fields inner(tag->get_object(), path + ".");
  if (const auto type = inner.string("type"); type && *type != "structural_tag")
    inner.fail("type", "invalid_value", "'" + path + ".type' can only be structural_tag.");
  Shape shape = read_structural_tag(inner);
  if (const auto error = inner.finish()) fields.fail(*error);
  return shape;
}

std::optional<ConstraintCall> read_structured_outputs(Fields& fields) {
  const JsonObject* wanted = fields.object("structured_outputs");
  if (!wanted) return {};
  Fields inner(*wanted, "structured_outputs.");
  std::vector<ConstraintCall> found;
  const auto add = [&](Shape shape, const char* name) {
    found.push_back({.shape = std::move(shape), .field = std::string("structured_outputs.") + name});
  };
  if (auto schema = value_or_text(inner, "json")) add(Shape::json(*std::move(schema)), "json");
  if (inner.boolean("json_object").value_or(false)) add(any_object(), "json_object");
  if (auto pattern = inner.string("regex")) add(Shape::written(Shape::Kind::regex, *std::move(pattern)), "regex");
  if (auto grammar = inner.string("grammar")) add(grammar_shape(*grammar), "grammar");
  if (const JsonArray* choices = inner.array("choice")) {
    std::vector<std::string> texts;
    for (const Json& choice : *choices)
      if (choice.is_string()) texts.emplace_back(choice.get_string());
    if (texts.empty() || texts.size() != choices->size())
      inner.fail("choice", "invalid_value", "'structured_outputs.choice' must be an array of strings, at least one.");
    add(Shape::one_of(std::move(texts)), "choice");
  }
  if (auto tag = read_tag_text(inner)) add(*std::move(tag), "structural_tag");
  const bool compact = inner.boolean("disable_any_whitespace").value_or(false);
  static constexpr std::string_view kNoEffect[] = {"disable_fallback"};
  inner.ignore(kNoEffect);
  inner.refuse("whitespace_pattern", "'schema_options.whitespace' can be bounded, compact or flexible");
  if (inner.boolean("disable_additional_properties").value_or(false))
    inner.fail("disable_additional_properties", "unsupported_value",
               "Write \"additionalProperties\": false into the schema instead.");
  if (!inner.failed() && found.size() != 1)
    fields.fail(
        "structured_outputs", "invalid_value",
        "'structured_outputs' must have exactly one of json, json_object, regex, choice, grammar and structural_tag.");
  if (const auto error = inner.finish()) fields.fail(*error);
  if (found.size() != 1) return {};
  if (compact) found.front().options.whitespace = grammar::Whitespace::compact;
  return std::move(found.front());
}

}  // namespace

// GBNF, if `::=` follows the first name: in Lark it can stand in a literal only.
grammar::Shape grammar_shape(const std::string& text) {
  std::string_view rest = text;
  const auto drop = [&](std::string_view these) {
    rest.remove_prefix(std::min(rest.find_first_not_of(these), rest.size()));
  };
  for (drop(" \t\r\n"); rest.starts_with('#'); drop(" \t\r\n")) rest.remove_prefix(std::min(rest.find('\n'), rest.size()));
  rest.remove_prefix(std::min(rest.find_first_of(" \t\r\n:"), rest.size()));
  drop(" \t");
  return Shape::written(rest.starts_with("::=") ? Shape::Kind::gbnf : Shape::Kind::lark, text);
}

std::optional<ConstraintCall> read_constraint(Fields& fields) {
  std::vector<ConstraintCall> found;
  if (auto call = read_response_format(fields)) found.push_back(*std::move(call));
  if (auto call = read_structured_outputs(fields)) found.push_back(*std::move(call));
  if (const auto grammar = fields.string("grammar"))
    found.push_back({.shape = grammar_shape(*grammar), .field = "grammar"});
  if (const Json* schema = fields.any("json_schema"))
    found.push_back({.shape = Shape::json(*schema), .field = "json_schema"});
  if (found.size() > 1)
    fields.fail(found[1].field, "invalid_value",
                "'" + found[0].field + "' and '" + found[1].field + "' both constrain the answer; send one.");
  if (found.empty()) return {};
  const bool compact = found.front().options.whitespace == grammar::Whitespace::compact;
  found.front().options = read_schema_options(fields);
  if (compact) found.front().options.whitespace = grammar::Whitespace::compact;
  return std::move(found.front());
}

grammar::JsonSchemaOptions read_schema_options(Fields& fields) {
  grammar::JsonSchemaOptions options;
  const JsonObject* given = fields.object("schema_options");
  if (!given) return options;
  Fields inner(*given, "schema_options.");
  options.any_order = inner.boolean("any_order").value_or(false);
  options.enforce_formats = inner.boolean("formats").value_or(true);
  if (const auto name = inner.string("whitespace")) {
    if (const auto whitespace = whitespace_named(*name)) {
      options.whitespace = *whitespace;
    } else {
      inner.fail("whitespace", "invalid_value",
                 "'schema_options.whitespace' must be bounded, compact or flexible, not " + shown(Json(*name)) + ".");
    }
  }
  if (const auto error = inner.finish()) fields.fail(*error);
  return options;
}

std::optional<grammar::Whitespace> whitespace_named(std::string_view name) {
  if (name == "bounded") return grammar::Whitespace::bounded;
  if (name == "compact") return grammar::Whitespace::compact;
  if (name == "flexible") return grammar::Whitespace::flexible;
  return {};
}

std::shared_ptr<const grammar::TokenTrie> token_trie(const text::Tokenizer& tokenizer,
                                                     const std::vector<text::TokenId>& end_tokens,
                                                     const std::vector<text::TokenId>& marks) {
  const auto holds = [](const std::vector<text::TokenId>& ids, text::TokenId id) {
    return std::ranges::find(ids, id) != ids.end();
  };
  std::vector<grammar::TokenId> never;
  for (text::TokenId id = 0; id < tokenizer.vocab_size(); id++)
    if (tokenizer.is_control(id) && !holds(end_tokens, id) && !holds(marks, id)) never.push_back(id);
  return grammar::TokenTrie::build(tokenizer.vocabulary(), end_tokens, never);
}

Constraints::Constraints(const text::Tokenizer& tokenizer, std::vector<text::TokenId> end_tokens,
                         std::vector<text::TokenId> marks)
    : tokenizer_(tokenizer), end_tokens_(std::move(end_tokens)), marks_(std::move(marks)) {}

std::shared_ptr<const grammar::TokenTrie> Constraints::trie(bool marks) {
  if (marks && !marks_.empty()) {
    std::call_once(marked_made_, [this] { marked_ = token_trie(tokenizer_, end_tokens_, marks_); });
    return marked_;
  }
  std::call_once(trie_made_, [this] { trie_ = token_trie(tokenizer_, end_tokens_); });
  return trie_;
}

Parsed<grammar::Matcher> Constraints::matcher(const ConstraintCall& call) {
  const grammar::JsonSchemaOptions& how = call.options;
  const std::string key = std::to_string(how.any_order) + std::to_string(how.enforce_formats) +
                          std::to_string(static_cast<int>(how.whitespace)) + call.shape.key();
  {
    std::lock_guard lock(mutex_);
    if (const auto found = by_key_.find(key); found != by_key_.end()) {
      entries_.splice(entries_.begin(), entries_, found->second);
      return grammar::Matcher(entries_.front().grammar, trie(call.marks));
    }
  }
  // Compiled without the lock: another thread may do the same meanwhile, which costs time and nothing else.
  auto grammar = grammar::Grammar::from_shape(call.shape, call.options);
  if (!grammar) {
    const std::string& at = grammar.error().subject;
    // A schema with a name of its own, or a pointer into the only one.
    const bool named = at.find('.') < at.find_first_of("/#");
    const bool pointer = at.starts_with("/") || at.starts_with("#");
    return ApiError{.message = grammar.error().message,
                    .param = named     ? at
                             : pointer ? call.field + at
                                       : call.field,
                    .code = "invalid_constraint"};
  }
  std::lock_guard lock(mutex_);
  if (!by_key_.contains(key)) {
    entries_.push_front({key, *grammar});
    by_key_[key] = entries_.begin();
    if (entries_.size() > kKept) {
      by_key_.erase(entries_.back().key);
      entries_.pop_back();
    }
  }
  return grammar::Matcher(*grammar, trie(call.marks));
}

}  // namespace unisono::serve

#include "serve/constraints.h"

#include <algorithm>

namespace unisono::serve {

namespace {

using Kind = ConstraintCall::Kind;

constexpr size_t kKept = 64;  // compiled grammars, with the masks learnt while matching

// {"type": "text" | "json_object" | "json_schema", "json_schema": {"name", "schema", "strict", "description"}}
std::optional<ConstraintCall> read_response_format(Fields& fields) {
  const JsonObject* format = fields.object("response_format");
  if (!format) return {};
  Fields inner(*format, "response_format.");
  std::optional<ConstraintCall> call;
  const auto type = inner.string("type");
  if (!type) inner.required("type");
  if (type == "json_object") {
    call = ConstraintCall{Kind::json_object, nullptr, "response_format"};
  } else if (type == "json_schema") {
    if (inner.required("json_schema"))
      if (const JsonObject* described = inner.object("json_schema")) {
        Fields schema(*described, "response_format.json_schema.");
        static constexpr std::string_view kNoEffect[] = {"name", "description"};
        schema.ignore(kNoEffect);
        schema.boolean("strict");  // every keyword is enforced or refused, asked for or not
        if (const Json* value = schema.required("schema"))
          call = ConstraintCall{Kind::json_schema, *value, "response_format.json_schema.schema"};
        if (const auto error = schema.finish()) fields.fail(*error);
      }
  } else if (type && *type != "text") {
    inner.fail("type", "unsupported_value",
               "'response_format.type' must be text, json_object or json_schema, not " + shown(Json(*type)) + ".");
  }
  if (const auto error = inner.finish()) fields.fail(*error);
  return call;
}

std::optional<ConstraintCall> read_structured_outputs(Fields& fields) {
  const JsonObject* wanted = fields.object("structured_outputs");
  if (!wanted) return {};
  Fields inner(*wanted, "structured_outputs.");
  std::vector<ConstraintCall> found;
  const auto add = [&](Kind kind, Json value, const char* name) {
    found.push_back({kind, std::move(value), std::string("structured_outputs.") + name});
  };
  if (const Json* schema = inner.any("json")) {
    // vLLM takes the schema as an object or as its text.
    if (schema->is_string()) {
      auto parsed = parse_json(schema->get_string());
      if (parsed.ok()) {
        add(Kind::json_schema, *std::move(parsed), "json");
      } else {
        inner.fail("json", "invalid_value", "'structured_outputs.json' is a string, but no JSON: " + parsed.error().message);
      }
    } else {
      add(Kind::json_schema, *schema, "json");
    }
  }
  if (inner.boolean("json_object").value_or(false)) add(Kind::json_object, nullptr, "json_object");
  if (const auto pattern = inner.string("regex")) add(Kind::regex, Json(*pattern), "regex");
  if (const auto grammar = inner.string("grammar")) add(Kind::gbnf, Json(*grammar), "grammar");
  if (const JsonArray* choices = inner.array("choice")) {
    const bool texts = !choices->empty() && std::ranges::all_of(*choices, [](const Json& c) { return c.is_string(); });
    if (!texts) inner.fail("choice", "invalid_value", "'structured_outputs.choice' must be an array of strings, at least one.");
    add(Kind::choice, *choices, "choice");
  }
  inner.refuse("structural_tag", "only json, json_object, regex, choice and grammar are");
  if (!inner.failed() && found.size() != 1)
    inner.fail("", "invalid_value", "'structured_outputs' must have exactly one of json, json_object, regex, choice and grammar.");
  if (const auto error = inner.finish()) fields.fail(*error);
  if (found.size() != 1) return {};
  return found.front();
}

Result<std::shared_ptr<const grammar::Grammar>> compile(const ConstraintCall& call) {
  const auto text = [&] { return std::string_view(call.value.get_string().data(), call.value.get_string().size()); };
  switch (call.kind) {
    case Kind::json_object: return grammar::Grammar::json_object();
    case Kind::json_schema: return grammar::Grammar::from_json_schema(call.value);
    case Kind::regex: return grammar::Grammar::from_regex(text());
    case Kind::gbnf: return grammar::Grammar::from_gbnf(text());
    case Kind::choice: {
      std::vector<std::string> choices;
      for (const Json& choice : call.value.get_array()) choices.emplace_back(choice.get_string());
      return grammar::Grammar::from_choices(choices);
    }
  }
  return Error{"This kind of constraint is not known."};
}

}  // namespace

std::optional<ConstraintCall> read_constraint(Fields& fields) {
  std::vector<ConstraintCall> found;
  if (auto call = read_response_format(fields)) found.push_back(*std::move(call));
  if (auto call = read_structured_outputs(fields)) found.push_back(*std::move(call));
  if (const auto grammar = fields.string("grammar")) found.push_back({Kind::gbnf, Json(*grammar), "grammar"});
  if (const Json* schema = fields.any("json_schema")) found.push_back({Kind::json_schema, *schema, "json_schema"});
  if (found.size() > 1)
    fields.fail(found[1].field, "invalid_value",
                "'" + found[0].field + "' and '" + found[1].field + "' both constrain the answer; send one.");
  if (found.empty()) return {};
  return std::move(found.front());
}

std::shared_ptr<const grammar::TokenTrie> token_trie(const text::Tokenizer& tokenizer, const std::vector<text::TokenId>& end_tokens) {
  std::vector<grammar::TokenId> controls;
  for (text::TokenId id = 0; id < tokenizer.vocab_size(); id++)
    if (tokenizer.is_control(id) && std::ranges::find(end_tokens, id) == end_tokens.end()) controls.push_back(id);
  return grammar::TokenTrie::build(tokenizer.vocabulary(), end_tokens, controls);
}

Constraints::Constraints(const text::Tokenizer& tokenizer, std::vector<text::TokenId> end_tokens)
    : tokenizer_(tokenizer), end_tokens_(std::move(end_tokens)) {}

std::shared_ptr<const grammar::TokenTrie> Constraints::trie() {
  std::call_once(trie_made_, [this] { trie_ = token_trie(tokenizer_, end_tokens_); });
  return trie_;
}

Parsed<grammar::Matcher> Constraints::matcher(const ConstraintCall& call) {
  const std::string key = std::to_string(static_cast<int>(call.kind)) + to_text(call.value);
  {
    std::lock_guard lock(mutex_);
    if (const auto found = by_key_.find(key); found != by_key_.end()) {
      entries_.splice(entries_.begin(), entries_, found->second);
      return grammar::Matcher(entries_.front().grammar, trie());
    }
  }
  // Compiled without the lock: another thread may do the same meanwhile, which costs time and nothing else.
  auto grammar = compile(call);
  if (!grammar) {
    const std::string& at = grammar.error().subject;
    return ApiError{.message = grammar.error().message,
                    .param = at.starts_with("/") || at.starts_with("#") ? call.field + at : call.field,
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
  return grammar::Matcher(*grammar, trie());
}

}  // namespace unisono::serve

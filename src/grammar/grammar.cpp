#include "grammar/grammar.h"

#include "grammar/core.h"
#include "grammar/gbnf.h"
#include "grammar/regex_parser.h"
#include "grammar/schema_rules.h"
#include "grammar/tags.h"

namespace unisono::grammar {

namespace {

// The finished core as a grammar, or why nothing belongs to it.
Result<std::shared_ptr<const Grammar>> seal(std::unique_ptr<Core> core) {
  core->pool.set_budget(kRunNodes, kRunSteps);
  core->recognizer = std::make_shared<Recognizer>(core->lexicon, core->rules);
  if (core->pool.exhausted()) return Error{"the grammar is too complex", ""};
  if (core->recognizer->start(core->root) == Recognizer::kDead) return Error{"no text belongs to the grammar", ""};
  return std::shared_ptr<const Grammar>(std::make_shared<Grammar>(std::move(core)));
}

}  // namespace

Grammar::Grammar(std::unique_ptr<Core> core) : core_(std::move(core)) {}
Grammar::~Grammar() = default;
const std::vector<std::string>& Grammar::notes() const { return core_->notes; }

Result<std::shared_ptr<const Grammar>> Grammar::from_json_schema(const Json& schema, const JsonSchemaOptions& options) {
  auto core = std::make_unique<Core>();
  core->pool.set_budget(kCompileNodes, kCompileSteps);
  auto rules = SchemaRules::compile(schema, options, core->pool, core->lexicon, core->rules);
  if (!rules) return rules.error();
  core->root = (*rules)->root();
  core->notes = (*rules)->notes();
  core->sources.push_back(std::move(*rules));
  return seal(std::move(core));
}

Result<std::shared_ptr<const Grammar>> Grammar::json_object(const JsonSchemaOptions& options) {
  return from_json_schema(JsonObject{{"type", "object"}}, options);
}

Result<std::shared_ptr<const Grammar>> Grammar::from_regex(std::string_view pattern) {
  auto core = std::make_unique<Core>();
  core->pool.set_budget(kCompileNodes, kCompileSteps);
  Result<RegexId> language = parse_regex(core->pool, pattern, Match::whole);
  if (!language) return language.error();
  core->root = core->rules.add();
  core->rules.peek(core->root).read(core->lexicon.regex(*language), RuleTable::kEnd);
  return seal(std::move(core));
}

Result<std::shared_ptr<const Grammar>> Grammar::from_gbnf(std::string_view text) {
  auto core = std::make_unique<Core>();
  core->pool.set_budget(kCompileNodes, kCompileSteps);
  Result<NodeId> root = compile_gbnf(text, *core);
  if (!root) return root.error();
  core->root = *root;
  return seal(std::move(core));
}

Result<std::shared_ptr<const Grammar>> Grammar::from_lark(std::string_view text) {
  auto core = std::make_unique<Core>();
  core->pool.set_budget(kCompileNodes, kCompileSteps);
  Result<NodeId> root = compile_lark(text, *core);
  if (!root) return root.error();
  core->root = *root;
  return seal(std::move(core));
}

Result<std::shared_ptr<const Grammar>> Grammar::from_tags(const std::vector<StructuralTag>& tags, bool at_least_one,
                                                          bool stop_after_first, const JsonSchemaOptions& options) {
  auto core = std::make_unique<Core>();
  core->pool.set_budget(kCompileNodes, kCompileSteps);
  Result<NodeId> root = compile_tags(tags, at_least_one, stop_after_first, options, *core);
  if (!root) return root.error();
  core->root = *root;
  return seal(std::move(core));
}

Result<std::shared_ptr<const Grammar>> Grammar::from_choices(const std::vector<std::string>& choices) {
  if (choices.empty()) return Error{"`choice` must hold at least one text", ""};
  auto core = std::make_unique<Core>();
  for (const std::string& choice : choices)
    for (std::string_view rest = choice; !rest.empty();)
      if (next_char(rest) > kMaxChar) return Error{"a choice is not valid UTF-8", ""};
  core->root = core->rules.add();
  core->rules.peek(core->root).read(core->lexicon.literals(choices), RuleTable::kEnd);
  return seal(std::move(core));
}

}  // namespace unisono::grammar

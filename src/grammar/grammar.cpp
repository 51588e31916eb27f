#include "grammar/grammar.h"

#include "grammar/core.h"
#include "grammar/shape_rules.h"

namespace unisono::grammar {

Grammar::Grammar(std::unique_ptr<Core> core) : core_(std::move(core)) {}
Grammar::~Grammar() = default;

Result<std::shared_ptr<const Grammar>> Grammar::from_shape(const Shape& shape, const JsonSchemaOptions& options) {
  auto core = std::make_unique<Core>();
  core->pool.set_budget(kCompileNodes, kCompileSteps);
  auto root = compile_shape(shape, options, *core);
  if (!root) return root.error();
  core->root = *root;
  core->pool.set_budget(kRunNodes, kRunSteps);
  core->recognizer = std::make_shared<Recognizer>(core->lexicon, core->rules);
  if (core->pool.exhausted()) return Error{"the grammar is too complex", ""};
  if (core->recognizer->start(core->root) == Recognizer::kDead)
    return Error{core->recognizer->overflowed() ? "the grammar is too complex" : "no text belongs to the grammar", ""};
  return std::shared_ptr<const Grammar>(std::make_shared<Grammar>(std::move(core)));
}

Result<std::shared_ptr<const Grammar>> Grammar::from_json_schema(const Json& schema, const JsonSchemaOptions& options) {
  return from_shape(Shape::json(schema), options);
}

Result<std::shared_ptr<const Grammar>> Grammar::from_regex(std::string_view pattern) {
  return from_shape(Shape::written(Shape::Kind::regex, std::string(pattern)));
}

Result<std::shared_ptr<const Grammar>> Grammar::from_gbnf(std::string_view text) {
  return from_shape(Shape::written(Shape::Kind::gbnf, std::string(text)));
}

Result<std::shared_ptr<const Grammar>> Grammar::from_lark(std::string_view text) {
  return from_shape(Shape::written(Shape::Kind::lark, std::string(text)));
}

Result<std::shared_ptr<const Grammar>> Grammar::from_choices(const std::vector<std::string>& choices) {
  return from_shape(Shape::one_of(choices));
}

}  // namespace unisono::grammar

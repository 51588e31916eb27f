// A compiled constraint: the language an answer must belong to. Immutable for its users and shared by any number of
// matchers and threads; what is learnt while matching (states, masks) is kept inside, behind a lock. It knows bytes and
// token ids, never a tokenizer, a request or a model.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"
#include "base/result.h"
#include "grammar/shape.h"

namespace unisono::grammar {

using TokenId = int32_t;

// What may stand between the tokens of a JSON text.
enum class Whitespace : uint8_t {
  bounded,   // after { [ , : and before } ]: nothing, one space, or a line break and at most 40 spaces or tabs
  compact,   // nothing, anywhere
  flexible,  // any number of spaces, tabs, line breaks and carriage returns, wherever JSON allows them
};

// JSON Schema's drafts, by the name in `$schema`; absent there: draft2020.
enum class Draft : uint8_t { draft4, draft6, draft7, draft2019, draft2020 };

struct JsonSchemaOptions {
  bool any_order = false;       // keys in any order; false: as `properties` declares them, other keys after them
  bool enforce_formats = true;  // false: `format` says nothing, as drafts 2019-09 and 2020-12 have it by default
  Whitespace whitespace = Whitespace::bounded;
  Draft default_draft = Draft::draft2020;  // for a schema without `$schema`
};

struct Core;

class Grammar {
 public:
  // All factories: refused with one sentence and, for a schema, a JSON pointer in `subject`. The work is bounded
  // by the text's length and fixed budgets, never by the clock, so the same text is refused on every machine.
  static Result<std::shared_ptr<const Grammar>> from_json_schema(const Json& schema, const JsonSchemaOptions& options = {});
  // The whole answer matches the ECMA-262 pattern.
  static Result<std::shared_ptr<const Grammar>> from_regex(std::string_view pattern);
  // llama.cpp's grammar notation; the rule `root` is the start.
  static Result<std::shared_ptr<const Grammar>> from_gbnf(std::string_view text);
  // The common subset of Lark's notation; the rule `start` is the start.
  static Result<std::shared_ptr<const Grammar>> from_lark(std::string_view text);
  // One of these texts.
  static Result<std::shared_ptr<const Grammar>> from_choices(const std::vector<std::string>& choices);
  // What a shape says: the general form, of which all others are short ones. The options hold for all schemas in it.
  static Result<std::shared_ptr<const Grammar>> from_shape(const Shape& shape, const JsonSchemaOptions& options = {});

  explicit Grammar(std::unique_ptr<Core> core);
  ~Grammar();
  // For this room only.
  Core& core() const { return *core_; }

 private:
  std::unique_ptr<Core> core_;
};

}  // namespace unisono::grammar

// Arguments of a call where they aren't written as JSON: a schema to a shape, for the schemas whose values such a syntax
// can hold. Others are refused by name.
#pragma once

#include "base/result.h"
#include "grammar/shape.h"
#include "serve/tool_syntax.h"
#include "serve/tools.h"

namespace unisono::serve {

// For Values::bare and Values::parameters.
Result<grammar::Shape> argument_shape(const ToolSyntax& syntax, const Tool& tool);

// Values::parameters: whether this argument's value stands there as bare text, not as JSON.
bool is_bare_text(const JsonObject& parameters, std::string_view key);

}  // namespace unisono::serve

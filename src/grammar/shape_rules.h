// From a shape to automata: where an answer of it begins.
#pragma once

#include "base/result.h"
#include "grammar/core.h"
#include "grammar/grammar.h"
#include "grammar/shape.h"

namespace unisono::grammar {

Result<NodeId> compile_shape(const Shape& shape, const JsonSchemaOptions& options, Core& core);

}  // namespace unisono::grammar

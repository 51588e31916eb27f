// Free text with constrained parts: where such an answer begins.
#pragma once

#include <vector>

#include "grammar/core.h"
#include "grammar/grammar.h"

namespace unisono::grammar {

Result<NodeId> compile_tags(const std::vector<StructuralTag>& tags, bool at_least_one, bool stop_after_first,
                            const JsonSchemaOptions& options, Core& core);

}  // namespace unisono::grammar

// Notations for grammars as rules in a core: where the start rule begins.
#pragma once

#include <string_view>

#include "base/result.h"
#include "grammar/core.h"

namespace unisono::grammar {

Result<NodeId> compile_gbnf(std::string_view text, Core& core);
Result<NodeId> compile_lark(std::string_view text, Core& core);

}  // namespace unisono::grammar

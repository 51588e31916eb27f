// Source text to the parsed template, by Jinja's grammar. Decides nothing at render time.
#pragma once

#include <memory>
#include <string_view>

#include "text/jinja_ast.h"

namespace unisono::text::jinja {

// The whole template as a function without parameters. Throws Failure: syntax errors and what the subset lacks, by name
// and line.
std::unique_ptr<Function> parse_template(std::string_view source);

}  // namespace unisono::text::jinja

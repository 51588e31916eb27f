// Structural tags as vLLM takes them: the older form (`structures` and `triggers`) and xgrammar's formats, to a shape.
#pragma once

#include "grammar/shape.h"
#include "serve/fields.h"

namespace unisono::serve {

// `fields`: the object that holds `format`, or `structures` and `triggers`. Mistakes are left in it.
grammar::Shape read_structural_tag(Fields& fields);

}  // namespace unisono::serve

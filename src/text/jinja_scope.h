// Binds variables to slots, by Jinja's rules of scope: what a name means is settled by where it is read and stored in the
// source. Runs once, at the end of parsing.
#pragma once

#include "text/jinja_ast.h"

namespace unisono::text::jinja {

// root: the whole template; its names, scopes and slots are filled in. Throws Failure for what can't be assigned to.
void bind_names(Function& root);

}  // namespace unisono::text::jinja

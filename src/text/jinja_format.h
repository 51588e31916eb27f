// Python's two ways to fill in a text: "%s" % values and "{}".format(values). The origin of both sides is kept.
#pragma once

#include "text/jinja_value.h"

namespace unisono::text::jinja {

class Machine;

// format % values: a tuple, a dict for %(name)s, or one value. Refused: what Python refuses, and conversions other than
// s r a d i u x X o c e E f F g G %.
Text format_percent(Machine& machine, const Text& format, const Value& values);
// format.format(*args.positional, **args.named), with nested fields and the format specifications of str, int and float.
Text format_braces(Machine& machine, const Text& format, const Args& args);

}  // namespace unisono::text::jinja

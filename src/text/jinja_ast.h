// The parsed template: expressions and statements, with every variable bound to a slot. Immutable after parsing, shared by
// renderings on any thread. Holds data only.
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "text/jinja_value.h"

namespace unisono::text::jinja {

struct Expr;
struct Stmt;
using ExprPtr = std::unique_ptr<Expr>;
using StmtPtr = std::unique_ptr<Stmt>;
using Block = std::vector<StmtPtr>;

// Deepest nesting of nodes; statements count too. Evaluation recurses as deep.
constexpr int kMaxNesting = 200;
// Most parameters of a macro, and named arguments of a call.
constexpr size_t kMaxNames = 1000;

// A variable: a slot of the function that is running, or of one it was defined in.
struct SlotRef {
  int up = 0;  // how many functions out
  int slot = -1;
};

// What the slots of a scope hold when it is entered.
struct Load {
  enum class From : uint8_t { nothing, context, outer };
  From from = From::nothing;
  int slot = 0;
  std::string name{};  // for context
  SlotRef outer{};     // for outer
};
using Scope = std::vector<Load>;

struct CallArgs {
  std::vector<ExprPtr> positional{};
  std::vector<std::pair<std::string, ExprPtr>> named{};
  ExprPtr star{}, double_star{};  // may be null
};

enum class Op : uint8_t {
  constant,     // constant
  name,         // name, slot
  member_slot,  // ns.attr as a target: name is the namespace's, slot; attribute
  list,         // parts
  tuple,        // parts
  dict,         // parts: key, value, key, value ...
  attribute,    // parts[0].attribute
  item,         // parts[0][parts[1]]
  slice,        // parts[0][parts[1]:parts[2]:parts[3]], each of the three may be null
  call,         // parts[0](args)
  filter,       // parts[0]|attribute(args)
  test,         // parts[0] is attribute(args)
  conditional,  // parts[1] if parts[0] else parts[2]; parts[2] may be null
  logical_and,
  logical_or,
  logical_not,
  compare,  // parts[0] compares[0] parts[1] compares[1] parts[2] ...
  add,
  subtract,
  multiply,
  divide,
  floor_divide,
  modulo,
  power,
  negative,
  positive,
  concat,    // parts
  captured,  // what a set or filter block has rendered; below filters only
};

enum class Comparison : uint8_t { equal, not_equal, less, less_equal, greater, greater_equal, in, not_in };

struct Expr {
  Op op = Op::constant;
  int line = 1;
  int depth = 1;  // of the tree below, this node included
  Value constant{};
  std::string name{};
  std::string attribute{};
  SlotRef slot{};
  std::vector<ExprPtr> parts{};
  std::vector<Comparison> compares{};
  std::unique_ptr<CallArgs> args{};
};

// A macro, the body of a call block or a generation block, or the whole template.
struct Function {
  std::string name{};
  std::vector<std::string> parameters{};
  std::vector<int> parameter_slots{};
  std::vector<ExprPtr> defaults{};                            // of the last parameters
  int caller_slot = -1, kwargs_slot = -1, varargs_slot = -1;  // of the special names; -1: the body doesn't use them
  int n_slots = 0;
  bool has_functions = false;  // functions are defined in it, which may refer to its slots
  Scope scope{};
  Block body{};
};

enum class Act : uint8_t {
  output,      // parts, one after the other
  branch,      // tests[i] (null: else) with blocks[i]
  loop,        // for target in value if tests[0] (null: no test): blocks[0]; blocks[1] when nothing was gone through
  assign,      // target = value
  capture,     // target = what blocks[0] renders, through the filters in value (may be null)
  filter,      // what blocks[0] renders, through the filters in value
  macro,       // target = function
  call,        // value, a call, with function as its `caller`
  generation,  // function, called
  with,        // targets parts[i] = tests[i] in blocks[0]
  leave,       // break
  next,        // continue
};

struct Stmt {
  Act act = Act::output;
  int line = 1;
  ExprPtr target{}, value{};
  std::vector<ExprPtr> parts{};
  std::vector<ExprPtr> tests{};
  std::vector<Block> blocks{};
  Scope scope{}, test_scope{}, else_scope{};  // of blocks[0], of the loop's test and of blocks[1]
  ExprPtr test_target{};                      // the loop's target once more, in the scope of its test
  int loop_slot = -1;                         // of `loop`; -1: the body doesn't use it
  std::unique_ptr<Function> function{};
};

}  // namespace unisono::text::jinja

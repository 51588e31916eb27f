// The values with an identity: namespaces, macros, the loop variable, functions and methods of builtins.
#pragma once

#include "text/jinja_eval.h"

namespace unisono::text::jinja {

struct Namespace final : Object {
  std::vector<std::pair<std::string, Value>> attributes{};

  std::string_view type_name() const override { return "Namespace"; }
  std::optional<Value> attribute(Machine& machine, std::string_view name) override;
  void set(Budget& budget, const std::string& name, Value value);
};

struct Macro final : Object {
  const Function& function;
  ActivationPtr outer;

  Macro(const Function& function, ActivationPtr outer) : function(function), outer(std::move(outer)) {}
  std::string_view type_name() const override { return "Macro"; }
  bool is_callable() const override { return true; }
  Value call(Machine& machine, Args args) override;
  std::optional<Value> attribute(Machine& machine, std::string_view name) override;
};

// A function of ours, on its own or as a method of `self`.
struct Builtin final : Object {
  using Body = Value (*)(Machine& machine, const Value& self, Args args);
  std::string_view name;
  Body body;
  Value self;

  Builtin(std::string_view name, Body body, Value self);
  std::string_view type_name() const override { return "builtin_function_or_method"; }
  bool is_callable() const override { return true; }
  Value call(Machine& machine, Args args) override { return body(machine, self, std::move(args)); }
};

struct Cycler final : Object {
  std::vector<Value> values;
  size_t position = 0;

  explicit Cycler(std::vector<Value> values);
  std::string_view type_name() const override { return "Cycler"; }
  std::optional<Value> attribute(Machine& machine, std::string_view name) override;
};

struct Joiner final : Object {
  Text separator;
  bool used = false;

  explicit Joiner(Text separator) : separator(std::move(separator)) {}
  std::string_view type_name() const override { return "Joiner"; }
  bool is_callable() const override { return true; }
  Value call(Machine& machine, Args args) override;
};

// What a loop goes through, with the elements its test refuses left out. Looks ahead only when asked to.
class LoopSource {
 public:
  LoopSource(Machine& machine, const Stmt& stmt, Value iterable)
      : machine_(&machine), stmt_(&stmt), iteration_(machine.budget(), std::move(iterable)) {}
  bool next(Value& element);
  const Value* peek();               // null: nothing follows
  size_t length(size_t seen);        // of the whole, of which `seen` elements are gone
  void close() { stmt_ = nullptr; }  // the loop is over, its variables are gone
  bool is_closed() const { return stmt_ == nullptr; }

 private:
  bool pull(Value& element);
  Machine* machine_;
  const Stmt* stmt_;
  Iteration iteration_;
  std::vector<Value> ahead_{};  // looked at already; the next one last
};

struct Loop final : Object {
  LoopSource source;
  Int index0 = -1;
  Value before{}, current{};
  std::optional<size_t> length{};
  std::optional<Value> last_changed{};

  Loop(Machine& machine, const Stmt& stmt, Value iterable);
  bool advance();
  void close();  // at the end of the loop: what outlives it must not lead back to its variables
  std::string_view type_name() const override { return "LoopContext"; }
  std::optional<Value> attribute(Machine& machine, std::string_view name) override;
  size_t size();
};

ObjectPtr make_builtin(std::string_view name, Builtin::Body body, Value self = {});

}  // namespace unisono::text::jinja

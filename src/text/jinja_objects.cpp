#include "text/jinja_objects.h"

#include <algorithm>

namespace unisono::text::jinja {

namespace {

Value loop_cycle(Machine&, const Value& self, Args args) {
  if (args.positional.empty() || !args.named.empty()) fail("loop.cycle needs the values to go through.");
  const auto& loop = static_cast<const Loop&>(*self.object());
  return args.positional[static_cast<size_t>(loop.index0) % args.positional.size()];
}

Value loop_changed(Machine& machine, const Value& self, Args args) {
  auto& loop = static_cast<Loop&>(*self.object());
  Value now = make_tuple(std::move(args.positional));
  if (loop.last_changed && equal(machine.budget(), *loop.last_changed, now)) return false;
  if (!loop.source.is_closed()) loop.last_changed = std::move(now);
  return true;
}

Value cycler_next(Machine&, const Value& self, Args) {
  auto& cycler = static_cast<Cycler&>(*self.object());
  Value value = cycler.values[cycler.position];
  cycler.position = (cycler.position + 1) % cycler.values.size();
  return value;
}

Value cycler_reset(Machine&, const Value& self, Args) {
  static_cast<Cycler&>(*self.object()).position = 0;
  return None{};
}

Value method_of(Object& object, std::string_view name, Builtin::Body body) {
  return make_builtin(name, body, object.shared_from_this());
}

}  // namespace

std::optional<Value> Namespace::attribute(Machine& machine, std::string_view name) {
  machine.budget().charge(attributes.size());
  for (const auto& [key, value] : attributes)
    if (key == name) return value;
  return std::nullopt;
}

void Namespace::set(Budget& budget, const std::string& name, Value value) {
  budget.charge(attributes.size());
  for (auto& [key, current] : attributes)
    if (key == name) {
      current = std::move(value);
      return;
    }
  budget.charge(Budget::kElement);
  attributes.emplace_back(name, std::move(value));
}

Value Macro::call(Machine& machine, Args args) { return machine.call_function(function, outer, std::move(args)); }

std::optional<Value> Macro::attribute(Machine& machine, std::string_view name) {
  TextBuilder builder(machine.budget());
  if (name == "name") {
    builder.append(function.name);
    return builder.finish();
  }
  if (name != "arguments") return std::nullopt;
  std::vector<Value> names;
  for (const std::string& parameter : function.parameters) {
    builder.append(parameter);
    names.push_back(builder.finish());
  }
  return make_tuple(std::move(names));
}

Builtin::Builtin(std::string_view name, Body body, Value self) : name(name), body(body), self(std::move(self)) {
  depth = deeper(depth_of(this->self));
}

Cycler::Cycler(std::vector<Value> values) : values(std::move(values)) {
  for (const Value& value : this->values) depth = std::max(depth, depth_of(value));
  depth = deeper(depth);
}

std::optional<Value> Cycler::attribute(Machine&, std::string_view name) {
  if (name == "current") return values[position];
  if (name == "next") return method_of(*this, "next", cycler_next);
  if (name == "reset") return method_of(*this, "reset", cycler_reset);
  return std::nullopt;
}

Value Joiner::call(Machine&, Args) { return std::exchange(used, true) ? separator : Text(); }

bool LoopSource::pull(Value& element) {
  while (stmt_ != nullptr && iteration_.next(element)) {
    if (stmt_->tests[0] == nullptr) return true;
    machine_->enter(stmt_->test_scope);
    machine_->assign(*stmt_->test_target, element);
    if (truth(machine_->eval(*stmt_->tests[0]))) return true;
  }
  return false;
}

bool LoopSource::next(Value& element) {
  if (ahead_.empty()) return pull(element);
  element = std::move(ahead_.back());
  ahead_.pop_back();
  return true;
}

const Value* LoopSource::peek() {
  if (ahead_.empty()) {
    Value element;
    if (!pull(element)) return nullptr;
    ahead_.push_back(std::move(element));
  }
  return &ahead_.back();
}

size_t LoopSource::length(size_t seen) {
  if (stmt_ != nullptr && stmt_->tests[0] == nullptr && iteration_.has_length()) return iteration_.length();
  std::vector<Value> rest(ahead_.rbegin(), ahead_.rend());
  for (Value element; pull(element);) {
    machine_->budget().charge(Budget::kElement);
    rest.push_back(std::move(element));
  }
  ahead_.assign(std::make_move_iterator(rest.rbegin()), std::make_move_iterator(rest.rend()));
  return seen + ahead_.size();
}

Loop::Loop(Machine& machine, const Stmt& stmt, Value iterable) : source(machine, stmt, iterable) {
  depth = deeper(depth_of(iterable));
}

void Loop::close() {
  source.close();
  last_changed.reset();
}

bool Loop::advance() {
  Value next;
  if (!source.next(next)) return false;
  ++index0;
  before = std::move(current);
  current = std::move(next);
  return true;
}

size_t Loop::size() {
  if (!length) length = source.length(static_cast<size_t>(index0 + 1));
  return *length;
}

std::optional<Value> Loop::attribute(Machine&, std::string_view name) {
  if (name == "index") return index0 + 1;
  if (name == "index0") return index0;
  if (name == "first") return index0 == 0;
  if (name == "last") return source.peek() == nullptr;
  if (name == "length") return size();
  if (name == "revindex") return static_cast<Int>(size()) - index0;
  if (name == "revindex0") return static_cast<Int>(size()) - index0 - 1;
  if (name == "depth") return 1;
  if (name == "depth0") return 0;
  if (name == "previtem") return index0 > 0 ? before : undefined("there is no previous item");
  if (name == "nextitem") {
    const Value* next = source.peek();
    return next != nullptr ? *next : undefined("there is no next item");
  }
  if (name == "cycle") return method_of(*this, "cycle", loop_cycle);
  if (name == "changed") return method_of(*this, "changed", loop_changed);
  return std::nullopt;
}

ObjectPtr make_builtin(std::string_view name, Builtin::Body body, Value self) {
  return std::make_shared<Builtin>(name, body, std::move(self));
}

}  // namespace unisono::text::jinja

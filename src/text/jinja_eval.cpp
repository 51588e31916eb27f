#include "text/jinja_eval.h"

#include <algorithm>

#include "text/jinja_objects.h"
#include "text/jinja_operators.h"
#include "text/jinja_print.h"
#include "text/jinja_unicode.h"

namespace unisono::text::jinja {

// Sends what is rendered into a text of its own.
class Machine::Capture {
 public:
  explicit Capture(Machine& machine) : machine_(machine), builder_(machine.budget_), before_(machine.out_) {
    machine_.out_ = &builder_;
  }
  ~Capture() { machine_.out_ = before_; }
  Text finish() { return builder_.finish(); }

 private:
  Machine& machine_;
  TextBuilder builder_;
  TextBuilder* before_;
};

Iteration::Iteration(Budget& budget, Value iterable) : budget_(&budget), iterable_(std::move(iterable)) {
  sequence_ = iterable_.sequence();
  dict_ = iterable_.dict();
  text_ = iterable_.text();
  if (!is_iterable(iterable_)) fail("'" + std::string(type_name(iterable_)) + "' object is not iterable");
}

bool Iteration::is_iterable(const Value& value) {
  return value.sequence() != nullptr || value.dict() != nullptr || value.text() != nullptr || value.is<Undefined>();
}

size_t Iteration::length() const {
  if (sequence_ != nullptr) return sequence_->items.size();
  if (dict_ != nullptr) return dict_->entries.size();
  return text_ != nullptr ? count_code_points(text_->view()) : 0;
}

bool Iteration::next(Value& element) {
  budget_->charge(Budget::kNode);
  if (sequence_ != nullptr) {
    size_t& at = sequence_->kind == SequenceKind::iterator ? sequence_->next : at_;
    if (at >= sequence_->items.size()) return false;
    element = sequence_->items[at++];
    return true;
  }
  if (dict_ != nullptr) {
    if (at_ >= dict_->entries.size()) return false;
    element = dict_->entries[at_++].first;
    return true;
  }
  if (text_ == nullptr || at_ >= text_->size()) return false;
  size_t length = code_point_at(text_->view(), at_).length;
  element = text_->slice(at_, at_ + length).as_markup(false);
  at_ += length;
  return true;
}

Machine::Machine(const Function& root, const std::unordered_map<std::string, Value>& variables, Budget& budget, int64_t now)
    : root_(root), variables_(variables), budget_(budget), now_(now) {}

Machine::~Machine() {
  for (const ActivationPtr& activation : activations_) activation->slots.clear();
  for (const ObjectPtr& object : objects_)
    if (auto* names = dynamic_cast<Namespace*>(object.get())) names->attributes.clear();
}

Text Machine::run() { return call_function(root_, nullptr, {}); }

ObjectPtr Machine::keep(ObjectPtr object) {
  objects_.push_back(object);
  return object;
}

std::vector<Value> Machine::elements(const Value& iterable) {
  if (const Sequence* sequence = iterable.sequence(); sequence != nullptr && sequence->kind != SequenceKind::iterator) {
    budget_.charge(sequence->items.size() * Budget::kElement);
    return sequence->items;
  }
  std::vector<Value> elements;
  Iteration iteration(budget_, iterable);
  for (Value element; iteration.next(element);) {
    budget_.charge(Budget::kElement);
    elements.push_back(std::move(element));
  }
  return elements;
}

Text Machine::print(const Value& value) {
  if (const Text* text = value.text()) return *text;
  TextBuilder builder(budget_);
  print_to(builder, budget_, value);
  return builder.finish();
}

Value Machine::call(const Value& callee, Args args) {
  if (const Undefined* undefined = callee.get<Undefined>()) fail(*undefined->why);
  Object* object = callee.object();
  if (object == nullptr || !object->is_callable()) fail("'" + std::string(type_name(callee)) + "' object is not callable");
  return object->call(*this, std::move(args));
}

Value Machine::filter(std::string_view name, const Value& input, Args args) {
  budget_.charge(name.size() / 4);
  const Filter* filter = find_filter(name);
  if (filter == nullptr && is_unsupported_filter(name)) fail("the filter '" + std::string(name) + "' is not supported.");
  if (filter == nullptr) fail("there is no filter '" + std::string(name) + "'.");
  return (*filter)(*this, input, std::move(args));
}

bool Machine::test(std::string_view name, const Value& input, Args args) {
  budget_.charge(name.size() / 4);
  const Test* test = find_test(name);
  if (test == nullptr) fail("there is no test '" + std::string(name) + "'.");
  return (*test)(*this, input, std::move(args));
}

Value Machine::attribute(const Value& object, std::string_view name) {
  budget_.charge(name.size() / 4);
  if (const Undefined* undefined = object.get<Undefined>()) fail(*undefined->why);
  std::optional<Value> found;
  if (Object* thing = object.object())
    found = thing->attribute(*this, name);
  else
    found = find_method(*this, object, name);
  if (found && object.object() != nullptr && name.starts_with('_'))
    return undefined("access to attribute '" + std::string(name) + "' of '" + std::string(type_name(object)) +
                     "' object is unsafe.");
  if (found) return *found;
  if (const Dict* dict = object.dict())
    if (const Value* value = dict->find(name)) return *value;
  std::string type = object.is<None>() ? "None" : std::string(type_name(object)) + " object";
  return undefined("'" + type + "' has no attribute '" + std::string(name) + "'");
}

Value Machine::item(const Value& object, const Value& key) {
  if (const Undefined* undefined = object.get<Undefined>()) fail(*undefined->why);
  Value found = subscript(*this, object, key);
  if (!found.is<Missing>()) return found;
  if (const Text* name = key.text(); name != nullptr && object.dict() == nullptr) return attribute(object, name->view());
  if (const Text* name = key.text())
    if (std::optional<Value> method = find_method(*this, object, name->view())) return *method;
  TextBuilder why(budget_);
  why.append("'" + (object.is<None>() ? "None" : std::string(type_name(object)) + " object") + "' has no " +
             (key.text() != nullptr ? "attribute " : "element "));
  repr_to(why, budget_, key);
  return undefined(std::string(why.finish().view()));
}

Value& Machine::slot(const SlotRef& ref) {
  Activation* activation = current_.get();
  for (int i = 0; i < ref.up; ++i) activation = activation->outer.get();
  return activation->slots[static_cast<size_t>(ref.slot)];
}

// Gives the variables of a scope what they hold before it begins.
void Machine::enter(const Scope& scope) {
  for (const Load& load : scope) {
    budget_.charge(Budget::kNode);
    Value value;
    if (load.from == Load::From::outer) {
      value = slot(load.outer);
    } else if (load.from == Load::From::context) {
      auto variable = variables_.find(load.name);
      value = variable != variables_.end() ? variable->second : global_function(load.name);
    }
    current_->slots[static_cast<size_t>(load.slot)] = std::move(value);
  }
}

void Machine::assign(const Expr& target, Value value) {
  if (target.op == Op::tuple) return unpack(target, value);
  if (target.op == Op::name) {
    slot(target.slot) = std::move(value);
    return;
  }
  auto* names = dynamic_cast<Namespace*>(slot(target.slot).object());
  if (names == nullptr) fail("only attributes of a namespace can be assigned to.");
  names->set(budget_, target.attribute, std::move(value));
}

void Machine::unpack(const Expr& target, const Value& value) {
  if (const Undefined* undefined = value.get<Undefined>(); undefined != nullptr && !target.parts.empty())
    fail("not enough values to unpack: " + *undefined->why);
  std::vector<Value> parts = elements(value);
  if (parts.size() != target.parts.size())
    fail(std::to_string(parts.size()) + " values can't be unpacked into " + std::to_string(target.parts.size()) +
         " variables.");
  for (size_t i = 0; i < parts.size(); ++i) assign(*target.parts[i], std::move(parts[i]));
}

Text Machine::call_function(const Function& function, const ActivationPtr& outer, Args args) {
  Deeper deeper(*this);
  budget_.charge(Budget::kObject + static_cast<size_t>(function.n_slots) * Budget::kElement);
  auto activation = std::make_shared<Activation>();
  activation->slots.resize(static_cast<size_t>(function.n_slots));
  activation->outer = outer;
  if (function.has_functions) activations_.push_back(activation);
  ActivationPtr caller = std::exchange(current_, activation);
  int line = line_;
  Text result;
  {
    Capture capture(*this);
    enter(function.scope);
    bind_parameters(function, *activation, std::move(args));
    run(function.body);
    result = capture.finish();
  }
  current_ = std::move(caller);
  line_ = line;
  return result;
}

// As Jinja's Macro does: a parameter without an argument or a default is undefined.
void Machine::bind_parameters(const Function& function, Activation& activation, Args args) {
  auto take_named = [&](std::string_view name) {
    Value value;
    budget_.charge(args.named.size());
    auto entry = std::find_if(args.named.begin(), args.named.end(), [&](const auto& arg) { return arg.first == name; });
    if (entry != args.named.end()) {
      value = std::move(entry->second);
      args.named.erase(entry);
    }
    return value;
  };
  size_t n = function.parameters.size(), n_required = n - function.defaults.size();
  for (size_t i = 0; i < n; ++i) {
    Value value = i < args.positional.size() ? args.positional[i] : take_named(function.parameters[i]);
    activation.slots[static_cast<size_t>(function.parameter_slots[i])] = std::move(value);
  }
  auto special = [&](int slot, Value value) { activation.slots[static_cast<size_t>(slot)] = std::move(value); };
  if (function.caller_slot >= 0) {
    Value caller = take_named("caller");
    special(function.caller_slot, caller.is<Missing>() ? undefined("No caller defined") : std::move(caller));
  }
  if (function.kwargs_slot >= 0) {
    Dict rest;
    for (auto& [name, value] : args.named) {
      TextBuilder key(budget_);
      key.append(name);
      rest.set(budget_, key.finish(), std::move(value));
    }
    special(function.kwargs_slot, make_dict(std::move(rest)));
  } else if (!args.named.empty()) {
    fail("macro '" + function.name + "' takes no keyword argument '" + args.named[0].first + "'");
  }
  if (function.varargs_slot >= 0) {
    size_t used = std::min(n, args.positional.size());
    special(function.varargs_slot,
            make_tuple({std::make_move_iterator(args.positional.begin() + static_cast<std::ptrdiff_t>(used)),
                        std::make_move_iterator(args.positional.end())}));
  } else if (args.positional.size() > n) {
    fail("macro '" + function.name + "' takes not more than " + std::to_string(n) + " argument(s)");
  }
  for (size_t i = 0; i < n; ++i) {
    auto slot = static_cast<size_t>(function.parameter_slots[i]);
    if (!activation.slots[slot].is<Missing>()) continue;
    Value value = i >= n_required ? eval(*function.defaults[i - n_required])
                                  : undefined("parameter '" + function.parameters[i] + "' was not provided");
    activation.slots[slot] = std::move(value);
  }
}

Machine::Flow Machine::run(const Block& block) {
  Deeper deeper(*this);
  for (const StmtPtr& stmt : block)
    if (Flow flow = run(*stmt); flow != Flow::normal) return flow;
  return Flow::normal;
}

Machine::Flow Machine::run(const Stmt& stmt) {
  line_ = stmt.line;
  switch (stmt.act) {
    case Act::output:
      for (const ExprPtr& part : stmt.parts) {
        const Text* constant = part->op == Op::constant ? part->constant.text() : nullptr;
        if (constant != nullptr)
          out_->append(*constant);
        else
          print_to(*out_, budget_, eval(*part));
      }
      return Flow::normal;
    case Act::branch: return run_branch(stmt);
    case Act::loop: return run_loop(stmt);
    case Act::assign: run_assign(stmt); return Flow::normal;
    case Act::capture:
    case Act::filter: return run_capture(stmt);
    case Act::macro:
      assign(*stmt.target, ObjectPtr(std::make_shared<Macro>(*stmt.function, current_)));
      return Flow::normal;
    case Act::call: {
      Value caller = ObjectPtr(std::make_shared<Macro>(*stmt.function, current_));
      print_to(*out_, budget_, eval_call(*stmt.value, &caller));
      return Flow::normal;
    }
    case Act::generation: out_->append(call_function(*stmt.function, current_, {})); return Flow::normal;
    case Act::with: return run_with(stmt);
    case Act::leave: return Flow::leave;
    case Act::next: return Flow::next;
  }
  return Flow::normal;
}

Machine::Flow Machine::run_branch(const Stmt& stmt) {
  for (size_t i = 0; i < stmt.tests.size(); ++i)
    if (stmt.tests[i] == nullptr || truth(eval(*stmt.tests[i]))) return run(stmt.blocks[i]);
  return Flow::normal;
}

Machine::Flow Machine::run_loop(const Stmt& stmt) {
  budget_.charge(Budget::kObject);
  auto loop = std::make_shared<Loop>(*this, stmt, eval(*stmt.value));
  struct Close {
    Loop& loop;
    ~Close() { loop.close(); }
  } close{*loop};
  bool any = false;
  while (loop->advance()) {
    if (stmt.loop_slot >= 0) current_->slots[static_cast<size_t>(stmt.loop_slot)] = ObjectPtr(loop);
    assign(*stmt.target, loop->current);
    enter(stmt.scope);
    Flow flow = run(stmt.blocks[0]);
    if (flow == Flow::leave) break;
    // Jinja's `else` of a loop is for loops of which no iteration came to its end.
    any = any || flow == Flow::normal;
  }
  if (stmt.loop_slot >= 0) current_->slots[static_cast<size_t>(stmt.loop_slot)] = {};
  if (any) return Flow::normal;
  enter(stmt.else_scope);
  return run(stmt.blocks[1]);
}

Machine::Flow Machine::run_capture(const Stmt& stmt) {
  Value result;
  {
    Capture capture(*this);
    enter(stmt.scope);
    if (Flow flow = run(stmt.blocks[0]); flow != Flow::normal) return flow;
    result = capture.finish();
  }
  if (stmt.value != nullptr) {
    captured_.push_back(std::move(result));
    result = eval(*stmt.value);
    captured_.pop_back();
  }
  if (stmt.act == Act::capture)
    assign(*stmt.target, std::move(result));
  else
    print_to(*out_, budget_, result);
  return Flow::normal;
}

Machine::Flow Machine::run_with(const Stmt& stmt) {
  enter(stmt.scope);
  for (size_t i = 0; i < stmt.parts.size(); ++i) assign(*stmt.parts[i], eval(*stmt.tests[i]));
  return run(stmt.blocks[0]);
}

void Machine::run_assign(const Stmt& stmt) { assign(*stmt.target, eval(*stmt.value)); }

}  // namespace unisono::text::jinja

#include "text/jinja_scope.h"

#include <map>
#include <set>

#include "text/jinja_builtins.h"
#include "text/jinja_lexer.h"
#include "text/jinja_walk.h"

namespace unisono::text::jinja {

namespace {

constexpr size_t kMaxCopies = 5'000'000;  // of names, when branches are looked at one by one

// A function while its names are bound.
struct Home {
  Function* function = nullptr;
  Home* outer = nullptr;
  std::map<std::pair<int, std::string>, int> slots{};  // (level of scope, name) to slot

  int slot(int level, const std::string& name) {
    auto [entry, is_new] = slots.try_emplace({level, name}, function->n_slots);
    if (is_new) ++function->n_slots;
    return entry->second;
  }
};

struct Ref {
  Home* home = nullptr;
  int slot = -1;
};

enum class From : uint8_t { parameter, context, outer, nothing };
struct Origin {
  From from = From::nothing;
  std::string name{};
  Ref outer{};
};

// What is known of the names of one scope. Scopes nest, across functions too.
struct Names {
  Names* outer = nullptr;
  Home* home = nullptr;
  int level = 0;
  std::map<std::string, Ref> refs{};
  std::map<int, Origin> origins{};  // by slot of this scope
  std::set<std::string> stores{};

  const Ref* find(const std::string& name) const {
    for (const Names* names = this; names != nullptr; names = names->outer)
      if (auto entry = names->refs.find(name); entry != names->refs.end()) return &entry->second;
    return nullptr;
  }
  void define(const std::string& name, Origin origin) {
    Ref ref{home, home->slot(level, name)};
    refs[name] = ref;
    origins[ref.slot] = std::move(origin);
  }
  void parameter(const std::string& name) {
    stores.insert(name);
    define(name, {From::parameter, {}, {}});
  }
  void store(const std::string& name) {
    stores.insert(name);
    if (refs.contains(name)) return;
    const Ref* ref = outer != nullptr ? outer->find(name) : nullptr;
    define(name, ref != nullptr ? Origin{From::outer, {}, *ref} : Origin{});
  }
  void load(const std::string& name) {
    if (find(name) == nullptr) define(name, {From::context, name, {}});
  }
  // After branches that only one of was run: what one of them stored may still be what it was outside.
  void merge(std::initializer_list<const Names*> branches) {
    std::set<std::string> stored;
    for (const Names* branch : branches)
      for (const std::string& name : branch->stores)
        if (!stores.contains(name)) stored.insert(name);
    for (const Names* branch : branches) {
      for (const auto& [name, ref] : branch->refs) refs[name] = ref;
      for (const auto& [slot, origin] : branch->origins) origins[slot] = origin;
      stores.insert(branch->stores.begin(), branch->stores.end());
    }
    for (const std::string& name : stored) {
      const Ref* ref = outer != nullptr ? outer->find(name) : nullptr;
      origins[refs.at(name).slot] = ref != nullptr ? Origin{From::outer, {}, *ref} : Origin{From::context, name, {}};
    }
  }
};

bool mentions(const Expr& expr, std::string_view name) {
  if ((expr.op == Op::name || expr.op == Op::member_slot) && expr.name == name) return true;
  bool found = false;
  for_each_part(expr, [&](const Expr& part) { found = found || mentions(part, name); });
  return found;
}

// Whether a name is read anywhere in a block, functions in it included.
bool mentions(const Block& block, std::string_view name) {
  bool found = false;
  for_each(
      block, [](const Stmt&) {}, [&](const Expr& expr) { found = found || mentions(expr, name); });
  return found;
}

class Binder {
 public:
  void root(Function& function);

 private:
  // First pass over a scope: which names it has. Scopes inside of it are left out.
  void read(Names& names, const Expr& expr);
  void read(Names& names, const ExprPtr& expr);
  void write(Names& names, const Expr& target, bool as_parameter);
  void survey(Names& names, const Block& block);
  void survey(Names& names, const Stmt& stmt);
  void survey_branch(Names& names, const Stmt& stmt, size_t arm);
  Names copy(const Names& names);

  // Second pass: the names are given their slots, scopes inside are gone into.
  void bind(Names& names, Expr& expr, bool soft);
  void bind(Names& names, const ExprPtr& expr, bool soft);
  void bind_filter(const Expr& expr, bool soft);
  void bind(Names& names, Block& block, bool soft);
  void bind(Names& names, Stmt& stmt, bool soft);
  void bind_loop(Names& names, Stmt& stmt, bool soft);
  void bind_function(Names& names, Function& function, int line);
  void special_parameters(Names& inner, Function& function, int line);
  void bind_target(Names& names, Expr& target);
  static Names inside(Names& names) { return {&names, names.home, names.level + 1, {}, {}, {}}; }
  static SlotRef slot_ref(const Names& names, const Ref& ref);
  static Scope scope(const Names& names);

  size_t copies_ = 0;
  int loops_ = 0;
};

void Binder::read(Names& names, const Expr& expr) {
  if (expr.op == Op::name || expr.op == Op::member_slot) {
    if (expr.name == "self" && names.find("self") == nullptr) fail_at(expr.line, "'self' is not supported.");
    names.load(expr.name);
  }
  for_each_part(expr, [&](const Expr& part) { read(names, part); });
}

void Binder::read(Names& names, const ExprPtr& expr) {
  if (expr != nullptr) read(names, *expr);
}

void Binder::write(Names& names, const Expr& target, bool as_parameter) {
  if (target.op == Op::tuple) {
    for (const ExprPtr& part : target.parts) write(names, *part, as_parameter);
  } else if (target.op == Op::member_slot) {
    names.load(target.name);
  } else if (target.op != Op::name) {
    fail_at(target.line, "this can't be assigned to.");
  } else if (as_parameter) {
    names.parameter(target.name);
  } else {
    names.store(target.name);
  }
}

Names Binder::copy(const Names& names) {
  copies_ += names.refs.size() + names.origins.size() + names.stores.size();
  if (copies_ > kMaxCopies) fail("The chat template has too many branches and variables.");
  return names;
}

void Binder::survey(Names& names, const Block& block) {
  for (const StmtPtr& stmt : block) survey(names, *stmt);
}

// One arm of an `if`, and for the first the others, which are looked at as what would run instead.
void Binder::survey_branch(Names& names, const Stmt& stmt, size_t arm) {
  read(names, stmt.tests[arm]);
  Names body = copy(names), others = copy(names), otherwise = copy(names);
  survey(body, stmt.blocks[arm]);
  if (arm == 0) {
    for (size_t i = 1; i < stmt.blocks.size(); ++i) {
      if (stmt.tests[i] != nullptr)
        survey_branch(others, stmt, i);
      else
        survey(otherwise, stmt.blocks[i]);
    }
  }
  names.merge({&body, &others, &otherwise});
}

void Binder::survey(Names& names, const Stmt& stmt) {
  switch (stmt.act) {
    case Act::output:
      for (const ExprPtr& part : stmt.parts) read(names, part);
      break;
    case Act::branch: survey_branch(names, stmt, 0); break;
    case Act::loop:
    case Act::call:
    case Act::filter: read(names, stmt.value); break;
    case Act::assign:
      read(names, stmt.value);
      write(names, *stmt.target, false);
      break;
    case Act::capture:
    case Act::macro: write(names, *stmt.target, false); break;
    case Act::with:
      for (const ExprPtr& value : stmt.tests) read(names, value);
      break;
    case Act::generation:
    case Act::leave:
    case Act::next: break;
  }
}

SlotRef Binder::slot_ref(const Names& names, const Ref& ref) {
  SlotRef result{0, ref.slot};
  for (const Home* home = names.home; home != ref.home; home = home->outer) ++result.up;
  return result;
}

Scope Binder::scope(const Names& names) {
  Scope scope;
  for (const auto& [slot, origin] : names.origins) {
    if (origin.from == From::nothing) scope.push_back({Load::From::nothing, slot, {}, {}});
    if (origin.from == From::context) scope.push_back({Load::From::context, slot, origin.name, {}});
    if (origin.from == From::outer) scope.push_back({Load::From::outer, slot, {}, slot_ref(names, origin.outer)});
  }
  return scope;
}

// soft: in a condition. There a filter or test that doesn't exist is an error only where it is reached, as in Jinja.
void Binder::bind_filter(const Expr& expr, bool soft) {
  bool is_filter = expr.op == Op::filter;
  std::string what = std::string(is_filter ? "filter" : "test") + " '" + expr.attribute + "'";
  if (is_filter && is_unsupported_filter(expr.attribute)) fail_at(expr.line, "the " + what + " is not supported.");
  bool exists = is_filter ? find_filter(expr.attribute) != nullptr : find_test(expr.attribute) != nullptr;
  if (!exists && !soft) fail_at(expr.line, "there is no " + what + ".");
}

void Binder::bind(Names& names, Expr& expr, bool soft) {
  if (expr.op == Op::name || expr.op == Op::member_slot) {
    const Ref* ref = names.find(expr.name);
    check(ref != nullptr, "a name was not seen in the survey of its scope");
    expr.slot = slot_ref(names, *ref);
  }
  if (expr.op == Op::filter || expr.op == Op::test) bind_filter(expr, soft);
  bool inner_soft = soft || expr.op == Op::conditional;
  for_each_part(expr, [&](Expr& part) { bind(names, part, inner_soft); });
}

void Binder::bind(Names& names, const ExprPtr& expr, bool soft) {
  if (expr != nullptr) bind(names, *expr, soft);
}

void Binder::bind_target(Names& names, Expr& target) {
  if (target.op == Op::name && target.name == "loop" && loops_ > 0)
    fail_at(target.line, "'loop' can't be assigned to here.");
  if (target.op == Op::tuple) {
    for (ExprPtr& part : target.parts) bind_target(names, *part);
    return;
  }
  bind(names, target, false);
}

void Binder::bind(Names& names, Block& block, bool soft) {
  for (StmtPtr& stmt : block) bind(names, *stmt, soft);
}

void Binder::bind(Names& names, Stmt& stmt, bool soft) {
  switch (stmt.act) {
    case Act::output:
      for (ExprPtr& part : stmt.parts) bind(names, part, soft);
      break;
    case Act::branch:
      for (ExprPtr& test : stmt.tests) bind(names, test, true);
      for (Block& block : stmt.blocks) bind(names, block, true);
      break;
    case Act::loop: bind_loop(names, stmt, soft); break;
    case Act::assign:
      bind(names, stmt.value, soft);
      bind_target(names, *stmt.target);
      break;
    case Act::capture:
    case Act::filter: {
      Names inner = inside(names);
      survey(inner, stmt.blocks[0]);
      read(inner, stmt.value);
      bind(inner, stmt.value, false);
      bind(inner, stmt.blocks[0], false);
      if (stmt.target != nullptr) bind_target(names, *stmt.target);
      stmt.scope = scope(inner);
      break;
    }
    case Act::macro:
      bind(names, *stmt.target, false);
      bind_function(names, *stmt.function, stmt.line);
      break;
    case Act::call:
      bind(names, stmt.value, soft);
      bind_function(names, *stmt.function, stmt.line);
      break;
    case Act::generation: bind_function(names, *stmt.function, stmt.line); break;
    case Act::with: {
      Names inner = inside(names);
      for (const ExprPtr& target : stmt.parts) write(inner, *target, true);
      survey(inner, stmt.blocks[0]);
      for (ExprPtr& value : stmt.tests) bind(names, value, soft);
      for (ExprPtr& target : stmt.parts) bind_target(inner, *target);
      bind(inner, stmt.blocks[0], false);
      stmt.scope = scope(inner);
      break;
    }
    case Act::leave:
    case Act::next: break;
  }
}

void Binder::bind_loop(Names& names, Stmt& stmt, bool soft) {
  bind(names, stmt.value, soft);
  ++loops_;
  Names body = inside(names);
  bool uses_loop = mentions(stmt.blocks[0], "loop");
  if (uses_loop) body.parameter("loop");
  write(body, *stmt.target, true);
  survey(body, stmt.blocks[0]);
  bind_target(body, *stmt.target);
  if (uses_loop) stmt.loop_slot = body.refs.at("loop").slot;
  bind(body, stmt.blocks[0], false);
  stmt.scope = scope(body);
  if (stmt.tests[0] != nullptr) {
    Names test = inside(names);
    write(test, *stmt.test_target, true);
    read(test, stmt.tests[0]);
    bind_target(test, *stmt.test_target);
    bind(test, stmt.tests[0], false);
    stmt.test_scope = scope(test);
  }
  Names otherwise = inside(names);
  survey(otherwise, stmt.blocks[1]);
  bind(otherwise, stmt.blocks[1], false);
  stmt.else_scope = scope(otherwise);
  --loops_;
}

// `caller`, `kwargs` and `varargs` are parameters of whoever uses them.
void Binder::special_parameters(Names& inner, Function& function, int line) {
  auto index_of = [&](std::string_view name) {
    for (size_t i = 0; i < function.parameters.size(); ++i)
      if (function.parameters[i] == name) return static_cast<int>(i);
    return -1;
  };
  auto take = [&](const char* name, int& slot) {
    if (!mentions(function.body, name)) return;
    int index = index_of(name);
    bool has_default = index >= static_cast<int>(function.parameters.size() - function.defaults.size());
    if (index >= 0 && std::string_view(name) == "caller" && !has_default)
      fail_at(line, "the parameter 'caller' needs a default.");
    if (index >= 0) return;
    inner.parameter(name);
    slot = inner.refs.at(name).slot;
  };
  take("caller", function.caller_slot);
  take("kwargs", function.kwargs_slot);
  take("varargs", function.varargs_slot);
}

void Binder::bind_function(Names& names, Function& function, int line) {
  names.home->function->has_functions = true;
  Home home{&function, names.home, {}};
  Names inner{&names, &home, names.level + 1, {}, {}, {}};
  for (const std::string& parameter : function.parameters) inner.parameter(parameter);
  special_parameters(inner, function, line);
  for (const ExprPtr& value : function.defaults) read(inner, value);
  survey(inner, function.body);
  for (const std::string& parameter : function.parameters)
    function.parameter_slots.push_back(inner.refs.at(parameter).slot);
  for (ExprPtr& value : function.defaults) bind(inner, value, false);
  bind(inner, function.body, false);
  function.scope = scope(inner);
}

void Binder::root(Function& function) {
  Home home{&function, nullptr, {}};
  Names names{nullptr, &home, 0, {}, {}, {}};
  survey(names, function.body);
  bind(names, function.body, false);
  function.scope = scope(names);
}

}  // namespace

void bind_names(Function& root) { Binder().root(root); }

}  // namespace unisono::text::jinja

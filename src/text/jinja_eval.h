// One rendering of a parsed template: runs its statements, evaluates its expressions. What values can do is in
// jinja_operators and jinja_builtins; how deep, how long and how much is limited here and in Budget.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "text/jinja_ast.h"
#include "text/jinja_builtins.h"

namespace unisono::text::jinja {

// The variables of one running function.
struct Activation {
  std::vector<Value> slots{};
  std::shared_ptr<Activation> outer{};  // of the function that this one was defined in
};
using ActivationPtr = std::shared_ptr<Activation>;

// Goes through whatever can be gone through, one element at a time.
class Iteration {
 public:
  Iteration(Budget& budget, Value iterable);  // Refused: what isn't iterable
  bool next(Value& element);
  bool has_length() const { return sequence_ == nullptr || sequence_->kind != SequenceKind::iterator; }
  size_t length() const;  // only with has_length(): of the whole
  static bool is_iterable(const Value& value);

 private:
  Budget* budget_;
  Value iterable_;  // keeps alive what the others point into
  const Sequence* sequence_ = nullptr;
  const Dict* dict_ = nullptr;
  const Text* text_ = nullptr;
  size_t at_ = 0;
};

class Machine {
 public:
  // root and variables must outlive the machine. now: seconds since the epoch.
  Machine(const Function& root, const std::unordered_map<std::string, Value>& variables, Budget& budget, int64_t now);
  ~Machine();
  Machine(const Machine&) = delete;
  Machine& operator=(const Machine&) = delete;

  // The whole output. Throws Failure.
  Text run();
  int line() const { return line_; }  // of what was being done last

  Budget& budget() { return budget_; }
  int64_t now() const { return now_; }
  std::vector<Value> elements(const Value& iterable);
  Text print(const Value& value);  // str(value)
  Value call(const Value& callee, Args args);
  Value filter(std::string_view name, const Value& input, Args args);
  bool test(std::string_view name, const Value& input, Args args);
  Value attribute(const Value& object, std::string_view name);  // object.name
  Value item(const Value& object, const Value& key);            // object[key]
  // What holds values that may lead back to it: emptied at the end of the rendering.
  ObjectPtr keep(ObjectPtr object);

 private:
  friend struct Macro;
  friend class LoopSource;
  enum class Flow : uint8_t { normal, leave, next };
  class Capture;
  // How deep statements, expressions and macros may be in one another while running: what the stack can take.
  static constexpr int kMaxDepth = 1500;
  class Deeper {
   public:
    explicit Deeper(Machine& machine) : machine_(machine) {
      if (machine_.depth_ >= kMaxDepth) fail("The chat template's macros call one another too deeply.");
      ++machine_.depth_;
      machine_.budget_.charge(Budget::kNode);
    }
    ~Deeper() { --machine_.depth_; }

   private:
    Machine& machine_;
  };

  Flow run(const Block& block);
  Flow run(const Stmt& stmt);
  Flow run_branch(const Stmt& stmt);
  Flow run_loop(const Stmt& stmt);
  Flow run_capture(const Stmt& stmt);
  Flow run_with(const Stmt& stmt);
  void run_assign(const Stmt& stmt);
  Text call_function(const Function& function, const ActivationPtr& outer, Args args);
  void bind_parameters(const Function& function, Activation& activation, Args args);

  void enter(const Scope& scope);
  void assign(const Expr& target, Value value);
  void unpack(const Expr& target, const Value& value);
  Value& slot(const SlotRef& ref);

  // In jinja_evaluate.cpp.
  Value eval(const Expr& expr);
  Value eval_name(const Expr& expr);
  Value eval_sequence(const Expr& expr);
  Value eval_dict(const Expr& expr);
  Value eval_conditional(const Expr& expr);
  Value eval_attribute(const Expr& expr);
  Value eval_item(const Expr& expr);
  Value eval_slice(const Expr& expr);
  Value eval_compare(const Expr& expr);
  Value eval_concat(const Expr& expr);
  Value eval_binary(const Expr& expr);
  Value eval_call(const Expr& expr, const Value* caller = nullptr);
  Value eval_filter(const Expr& expr);
  Value eval_test(const Expr& expr);
  Args eval_args(const CallArgs& args);

  const Function& root_;
  const std::unordered_map<std::string, Value>& variables_;
  Budget& budget_;
  int64_t now_;
  int line_ = 1;
  int depth_ = 0;
  ActivationPtr current_{};
  TextBuilder* out_ = nullptr;
  std::vector<Value> captured_{};  // what blocks have rendered whose filters are being applied, innermost last
  std::vector<ActivationPtr> activations_{};
  std::vector<ObjectPtr> objects_{};
};

}  // namespace unisono::text::jinja

// Grammars written as rules of expressions, whatever the notation: from their trees to automata. What is regular becomes
// one terminal; a rule that begins with itself becomes a loop. It knows no notation (gbnf.cpp, lark.cpp).
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/result.h"
#include "grammar/core.h"

namespace unisono::grammar {

struct Expression {
  enum class Op : uint8_t {
    language,  // regex
    rule,      // name
    sequence,
    choice,  // items; none: the empty text, or nothing
    repeat,  // items[0], min to max times
  };
  Op op = Op::sequence;
  RegexId regex = RegexPool::kEmpty;
  uint32_t min = 0, max = 0;
  std::string name{};
  std::vector<Expression> items{};

  static Expression of(RegexId language);
  static Expression call(std::string rule);
  static Expression many(Expression item, uint32_t min, uint32_t max);
};

class Ebnf {
 public:
  explicit Ebnf(Core& core) : core_(core), first_(NodeId(core.rules.size())) {}

  // False: a rule of this name is there already.
  bool add(const std::string& name, Expression body);
  bool has(const std::string& name) const { return index_.contains(name); }
  // What may stand between terminals, any number of times; kNothing: nothing.
  void ignore(RegexId language) { ignored_ = core_.pool.either({ignored_, language}); }
  // The language of an expression without recursion and of known names; false: it isn't such a one.
  bool regular_language(const Expression& e, RegexId* out) { return check_names(e, 0) && regular(e, out, 0); }
  // A rule of one terminal: nothing is ignored within it, even if it isn't simple.
  void mark_terminal(const std::string& name) { rules_[index_.at(name)].terminal = true; }
  // Where the rule `start` begins. Refused: unknown names, rules that begin with each other, too many nodes.
  Result<NodeId> finish(const std::string& start);

 private:
  struct Rule {
    std::string name;
    Expression body;
    NodeId begin = 0, end = 0;
    bool terminal = false, built = false, busy = false, regular_known = false;
    RegexId regular = RegexPool::kNothing;
    bool is_regular = false, nullable = false;
  };

  bool regular(const Expression& e, RegexId* out, int depth);
  bool rule_regular(uint32_t rule, RegexId* out, int depth);
  void build(const Expression& e, NodeId from, NodeId to, int depth);
  void read(RegexId language, NodeId from, NodeId to);
  void find_nullable();
  std::vector<std::pair<NodeId, size_t>> left_calls(uint32_t rule);
  std::vector<NodeId> after_reading(uint32_t rule);
  bool unroll_left_recursion();
  bool drop_barren(NodeId root);
  bool check_names(const Expression& e, int depth);

  Core& core_;
  const NodeId first_;  // the core's other nodes aren't its own
  std::vector<Rule> rules_{};
  std::unordered_map<std::string, uint32_t> index_{};
  std::unordered_map<NodeId, uint32_t> by_begin_{};
  std::vector<uint32_t> needed_{};
  RegexId ignored_ = RegexPool::kNothing;
  std::string error_{};
};

}  // namespace unisono::grammar

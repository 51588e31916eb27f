#include "grammar/ebnf.h"

#include <algorithm>

namespace unisono::grammar {

namespace {

constexpr int kMaxDepth = 200;
constexpr size_t kMaxNodes = 100'000;

}  // namespace

Expression Expression::of(RegexId language) {
  Expression out;
  out.op = Op::language;
  out.regex = language;
  return out;
}

Expression Expression::call(std::string rule) {
  Expression out;
  out.op = Op::rule;
  out.name = std::move(rule);
  return out;
}

Expression Expression::many(Expression item, uint32_t min, uint32_t max) {
  Expression out;
  out.op = Op::repeat;
  out.min = min;
  out.max = max;
  out.items.push_back(std::move(item));
  return out;
}

bool Ebnf::add(const std::string& name, Expression body) {
  if (!index_.emplace(name, uint32_t(rules_.size())).second) return false;
  rules_.push_back({name, std::move(body)});
  return true;
}

bool Ebnf::check_names(const Expression& e, int depth) {
  if (depth > kMaxDepth) error_ = "expressions are nested deeper than 200";
  if (e.op == Expression::Op::rule && !has(e.name)) error_ = "the rule `" + e.name + "` is used but not defined";
  for (const Expression& item : e.items)
    if (error_.empty()) check_names(item, depth + 1);
  return error_.empty();
}

bool Ebnf::rule_regular(uint32_t index, RegexId* out, int depth) {
  Rule& rule = rules_[index];
  if (rule.busy || depth > kMaxDepth) return false;
  if (!rule.regular_known) {
    rule.busy = true;
    RegexId language = RegexPool::kNothing;
    const bool is = regular(rule.body, &language, depth + 1);
    Rule& same = rules_[index];
    same.busy = false;
    // A rule under way higher up may have stopped this one: then it is no finding about this one.
    if (!is && depth > 0) return false;
    same.regular_known = true;
    same.is_regular = is;
    same.regular = language;
  }
  *out = rules_[index].regular;
  return rules_[index].is_regular;
}

bool Ebnf::regular(const Expression& e, RegexId* out, int depth) {
  if (depth > kMaxDepth) return false;
  RegexPool& pool = core_.pool;
  switch (e.op) {
    case Expression::Op::language: *out = e.regex; return true;
    case Expression::Op::rule:
      // With something ignored between terminals, only terminals are simple.
      if (ignored_ != RegexPool::kNothing && !rules_[index_.at(e.name)].terminal) return false;
      return rule_regular(index_.at(e.name), out, depth + 1);
    case Expression::Op::sequence: {
      RegexId all = RegexPool::kEmpty;
      for (size_t i = e.items.size(); i-- > 0;) {
        RegexId one = RegexPool::kNothing;
        if (!regular(e.items[i], &one, depth + 1)) return false;
        all = pool.concat(one, all);
      }
      *out = all;
      return true;
    }
    case Expression::Op::choice: {
      std::vector<RegexId> options;
      for (const Expression& item : e.items) {
        RegexId one = RegexPool::kNothing;
        if (!regular(item, &one, depth + 1)) return false;
        options.push_back(one);
      }
      *out = pool.either(std::move(options));
      return true;
    }
    case Expression::Op::repeat: {
      RegexId one = RegexPool::kNothing;
      if (!regular(e.items[0], &one, depth + 1)) return false;
      *out = pool.repeat(one, e.min, e.max);
      return true;
    }
  }
  return false;
}

void Ebnf::read(RegexId language, NodeId from, NodeId to) {
  if (language == RegexPool::kEmpty) return core_.rules.peek(from).free(to);
  const LexId lex = core_.lexicon.regex(language);
  if (ignored_ == RegexPool::kNothing) return core_.rules.peek(from).read(lex, to);
  const NodeId after = core_.rules.add();
  core_.rules.peek(from).read(lex, after);
  core_.rules.peek(after).free(to);
  core_.rules.peek(after).read(core_.lexicon.regex(core_.pool.repeat(ignored_, 1, RegexPool::kUnbounded)), to);
}

void Ebnf::build(const Expression& e, NodeId from, NodeId to, int depth) {
  if (core_.rules.size() > kMaxNodes || depth > kMaxDepth) error_ = "the grammar is too large";
  if (!error_.empty()) return;
  // Between terminals something may be ignored, so that a sequence of them is no terminal.
  const bool whole = ignored_ == RegexPool::kNothing || e.op == Expression::Op::language || e.op == Expression::Op::rule;
  RegexId language = RegexPool::kNothing;
  if (whole && regular(e, &language, 0)) return read(language, from, to);
  switch (e.op) {
    case Expression::Op::language: return read(e.regex, from, to);
    case Expression::Op::rule: {
      const uint32_t rule = index_.at(e.name);
      needed_.push_back(rule);
      if (rules_[rule].begin == 0) {
        rules_[rule].begin = core_.rules.add();
        rules_[rule].end = core_.rules.add();
        core_.rules.peek(rules_[rule].end).final = true;
        by_begin_[rules_[rule].begin] = rule;
      }
      return core_.rules.peek(from).call(rules_[rule].begin, to);
    }
    case Expression::Op::sequence: {
      for (size_t i = 0; i < e.items.size(); ++i) {
        const NodeId next = i + 1 == e.items.size() ? to : core_.rules.add();
        build(e.items[i], from, next, depth + 1);
        from = next;
      }
      if (e.items.empty()) core_.rules.peek(from).free(to);
      return;
    }
    case Expression::Op::choice:
      for (const Expression& item : e.items) build(item, from, to, depth + 1);
      return;
    case Expression::Op::repeat: {
      for (uint32_t i = 0; i < e.min && error_.empty(); ++i) {
        const NodeId next = core_.rules.add();
        build(e.items[0], from, next, depth + 1);
        from = next;
      }
      if (e.max == RegexPool::kUnbounded) {
        const NodeId loop = core_.rules.add();
        core_.rules.peek(from).free(loop);
        build(e.items[0], loop, loop, depth + 1);
        return core_.rules.peek(loop).free(to);
      }
      for (uint32_t i = e.min; i < e.max && error_.empty(); ++i) {
        const NodeId next = core_.rules.add();
        core_.rules.peek(from).free(to);
        build(e.items[0], from, next, depth + 1);
        from = next;
      }
      return core_.rules.peek(from).free(to);
    }
  }
}

void Ebnf::find_nullable() {
  bool changed = true;
  while (changed) {
    changed = false;
    for (auto& [begin, index] : by_begin_) {
      if (rules_[index].nullable) continue;
      std::vector<NodeId> todo{begin};
      std::unordered_map<NodeId, bool> met{{begin, true}};
      for (size_t i = 0; i < todo.size(); ++i) {
        const RuleNode& node = core_.rules.peek(todo[i]);
        if (node.final) rules_[index].nullable = changed = true;
        for (const RuleEdge& edge : node.edges) {
          const bool empty = edge.kind == RuleEdge::Kind::free ||
                             (edge.kind == RuleEdge::Kind::call && rules_[by_begin_.at(edge.what)].nullable) ||
                             (edge.kind == RuleEdge::Kind::terminal && core_.lexicon.accepting(edge.what));
          if (empty && met.emplace(edge.target, true).second) todo.push_back(edge.target);
        }
      }
    }
  }
}

// The calls that can happen before anything is read, as edges of nodes.
std::vector<std::pair<NodeId, size_t>> Ebnf::left_calls(uint32_t index) {
  std::vector<std::pair<NodeId, size_t>> out;
  std::vector<NodeId> todo{rules_[index].begin};
  std::unordered_map<NodeId, bool> met{{todo[0], true}};
  for (size_t i = 0; i < todo.size(); ++i) {
    const RuleNode& node = core_.rules.peek(todo[i]);
    for (size_t e = 0; e < node.edges.size(); ++e) {
      const RuleEdge& edge = node.edges[e];
      if (edge.kind == RuleEdge::Kind::call) out.emplace_back(todo[i], e);
      const bool empty = edge.kind == RuleEdge::Kind::free ||
                         (edge.kind == RuleEdge::Kind::call && rules_[by_begin_.at(edge.what)].nullable) ||
                         (edge.kind == RuleEdge::Kind::terminal && core_.lexicon.accepting(edge.what));
      if (empty && met.emplace(edge.target, true).second) todo.push_back(edge.target);
    }
  }
  return out;
}

// The nodes of the rule that can be reached over a terminal or a call.
std::vector<NodeId> Ebnf::after_reading(uint32_t index) {
  std::vector<NodeId> todo{rules_[index].begin}, out;
  std::unordered_map<NodeId, bool> met{{todo[0], false}};  // true: something was read
  for (size_t i = 0; i < todo.size(); ++i)
    for (const RuleEdge& edge : core_.rules.peek(todo[i]).edges) {
      const bool reads = met[todo[i]] || edge.kind != RuleEdge::Kind::free;
      const auto [it, fresh] = met.try_emplace(edge.target, reads);
      const bool later = !fresh && reads && !it->second;
      if (later) it->second = true;
      if (fresh || later) todo.push_back(edge.target);
    }
  for (const auto& [node, read] : met)
    if (read) out.push_back(node);
  return out;
}

// a: a x | y is y x*: where the rule ends, x may follow.
bool Ebnf::unroll_left_recursion() {
  for (auto& [begin, index] : by_begin_) {
    std::vector<std::pair<NodeId, size_t>> own;
    for (const auto& [node, edge] : left_calls(index))
      if (core_.rules.peek(node).edges[edge].what == begin) own.emplace_back(node, edge);
    for (auto it = own.rbegin(); it != own.rend(); ++it) {
      auto& edges = core_.rules.peek(it->first).edges;
      const NodeId target = edges[it->second].target;
      edges.erase(edges.begin() + long(it->second));
      core_.rules.peek(rules_[index].end).free(target);
    }
    // Where something was read before it, the call was none at the beginning, and is missed now.
    const std::vector<NodeId> later = after_reading(index);
    for (const auto& [node, edge] : own)
      if (std::find(later.begin(), later.end(), node) != later.end()) {
        error_ =
            "the rule `" + rules_[index].name + "` begins with itself behind what may be empty; write it as a repetition";
        return false;
      }
  }
  // What is left leads from rule to rule.
  std::unordered_map<uint32_t, int> state;
  for (auto& [first, unused] : by_begin_) {
    std::vector<std::pair<uint32_t, bool>> stack{{by_begin_[first], false}};
    while (!stack.empty()) {
      auto [rule, leaving] = stack.back();
      stack.pop_back();
      if (leaving) {
        state[rule] = 2;
        continue;
      }
      if (state[rule] != 0) continue;
      state[rule] = 1;
      stack.emplace_back(rule, true);
      for (const auto& [node, edge] : left_calls(rule)) {
        const uint32_t next = by_begin_.at(core_.rules.peek(node).edges[edge].what);
        if (state[next] == 1) {
          error_ = "the rules `" + rules_[rule].name + "` and `" + rules_[next].name +
                   "` begin with each other; write one of them as a repetition";
          return false;
        }
        stack.emplace_back(next, false);
      }
    }
  }
  return true;
}

Result<NodeId> Ebnf::finish(const std::string& start) {
  if (!has(start)) return Error{"the grammar has no rule `" + start + "`", start};
  for (const Rule& rule : rules_)
    if (!check_names(rule.body, 0)) return Error{error_, rule.name};
  const NodeId root = core_.rules.add(), begin = core_.rules.add(), end = core_.rules.add();
  core_.rules.peek(end).final = true;
  core_.rules.peek(root).free(begin);
  if (ignored_ != RegexPool::kNothing)
    core_.rules.peek(root).read(core_.lexicon.regex(core_.pool.repeat(ignored_, 1, RegexPool::kUnbounded)), begin);
  build(Expression::call(start), begin, end, 0);
  for (size_t i = 0; i < needed_.size() && error_.empty(); ++i) {
    Rule& rule = rules_[needed_[i]];
    if (std::exchange(rule.built, true)) continue;
    const Expression body = rule.body;
    const NodeId from = rule.begin, to = rule.end;
    build(body, from, to, 0);
  }
  if (core_.pool.exhausted()) error_ = "the grammar is too complex";
  if (error_.empty()) find_nullable();
  if (error_.empty()) unroll_left_recursion();
  if (!error_.empty()) return Error{error_, ""};
  if (!drop_barren(root)) return Error{"no text belongs to the rule `" + start + "`", start};
  return root;
}

// Calls of rules that no text belongs to, and what only leads to them, would be ways without an end.
bool Ebnf::drop_barren(NodeId root) {
  // A node is fruitful if a final node can be reached from it over terminals and fruitful rules.
  std::vector<bool> fruitful(core_.rules.size());
  fruitful[RuleTable::kEnd] = true;
  bool changed = true;
  while (changed) {
    changed = false;
    for (NodeId id = NodeId(fruitful.size()); id-- > first_;) {
      if (fruitful[id]) continue;
      const RuleNode& node = core_.rules.peek(id);
      bool good = node.final;
      for (const RuleEdge& edge : node.edges)
        good = good || (fruitful[edge.target] && (edge.kind != RuleEdge::Kind::call || fruitful[edge.what]));
      if (good) fruitful[id] = changed = true;
    }
  }
  for (NodeId id = first_; id < fruitful.size(); ++id)
    std::erase_if(core_.rules.peek(id).edges, [&](const RuleEdge& edge) {
      return !fruitful[edge.target] || (edge.kind == RuleEdge::Kind::call && !fruitful[edge.what]);
    });
  return fruitful[root];
}

}  // namespace unisono::grammar

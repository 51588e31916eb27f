// A context-free grammar as automata, one for each rule: an edge reads a terminal, runs another rule, or nothing. Nodes
// are made by their source when they are first asked for, so that counters and sets of seen keys need no expansion.
#pragma once

#include <cstdint>
#include <deque>
#include <string_view>
#include <vector>

#include "grammar/lexicon.h"

namespace unisono::grammar {

using NodeId = uint32_t;

struct RuleEdge {
  enum class Kind : uint8_t { terminal, call, free };
  Kind kind;
  uint32_t what;  // terminal: a LexId; call: the NodeId where the other rule begins
  NodeId target;
};

class RuleSource;

struct RuleNode {
  // A node that only stands for another, which depends on the terminal just read: its label, or its text.
  enum class Resolve : uint8_t { none, label, text };
  std::vector<RuleEdge> edges{};
  RuleSource* source = nullptr;  // makes the edges; null: they are there
  uint32_t key = 0;              // the source's own
  Resolve resolve = Resolve::none;
  bool final = false;  // the rule may end here
  bool made = true;

  void read(LexId terminal, NodeId target) {
    if (terminal != Lexicon::kDead) edges.push_back({RuleEdge::Kind::terminal, terminal, target});
  }
  void call(NodeId rule, NodeId target) { edges.push_back({RuleEdge::Kind::call, rule, target}); }
  void free(NodeId target) { edges.push_back({RuleEdge::Kind::free, 0, target}); }
};

class RuleSource {
 public:
  virtual ~RuleSource() = default;
  // Fills in node.edges and node.final; may add nodes.
  virtual void expand(RuleNode& node) = 0;
  // The node that a resolving one stands for after this terminal; kNowhere: none.
  virtual NodeId resolve(const RuleNode& node, LexId terminal, std::string_view text) = 0;
};

class RuleTable {
 public:
  static constexpr NodeId kEnd = 0;  // final, without edges
  static constexpr NodeId kNowhere = UINT32_MAX;

  RuleTable() {
    nodes_.emplace_back();
    nodes_[0].final = true;
  }
  NodeId add() {
    nodes_.emplace_back();
    return NodeId(nodes_.size() - 1);
  }
  NodeId add_lazy(RuleSource* source, uint32_t key, RuleNode::Resolve resolve = RuleNode::Resolve::none) {
    const NodeId id = add();
    nodes_[id].source = source;
    nodes_[id].key = key;
    nodes_[id].resolve = resolve;
    nodes_[id].made = resolve != RuleNode::Resolve::none;
    return id;
  }
  // Valid until the table dies: nodes never move.
  RuleNode& at(NodeId id) {
    RuleNode& node = nodes_[id];
    if (!node.made) {
      node.made = true;
      node.source->expand(node);
    }
    return node;
  }
  // Without making its edges.
  RuleNode& peek(NodeId id) { return nodes_[id]; }
  size_t size() const { return nodes_.size(); }

 private:
  std::deque<RuleNode> nodes_{};
};

}  // namespace unisono::grammar

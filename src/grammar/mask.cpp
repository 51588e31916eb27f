#include "grammar/mask.h"

namespace unisono::grammar {

namespace {

constexpr size_t kFewItems = 4;

}  // namespace

void MaskWalk::allow(TokenId token) {
  for (; token >= 0; token = trie_.next_alias(token)) bits_[size_t(token) / 64] |= uint64_t(1) << (size_t(token) % 64);
}

void MaskWalk::allow_all(std::span<const uint64_t> mask) {
  for (size_t i = 0; i < mask.size(); ++i) bits_[i] |= mask[i];
}

void MaskWalk::run(StateId state) {
  // Each item is walked alone: what one allows, the state allows.
  const std::vector<Recognizer::Item> items(recognizer_.items(state).begin(), recognizer_.items(state).end());
  size_t others = 0;
  for (const Recognizer::Item& item : items) {
    const uint32_t span = lexicon_.free_span(item.lex);
    if (span >= trie_.longest() || (span > 0 && span <= TokenTrie::kMaxPlain)) in_string(item, span);
    else ++others;
  }
  if (others == 0) return;
  const Nodes& all = trie_.all();
  if (others > kFewItems && others == items.size()) return by_state(all, 0, uint32_t(all.size()), state);
  for (const Recognizer::Item& item : items) {
    const uint32_t span = lexicon_.free_span(item.lex);
    if (span >= trie_.longest() || (span > 0 && span <= TokenTrie::kMaxPlain)) continue;
    path_.clear();
    by_terminal(all, 0, uint32_t(all.size()), item, item.lex);
  }
}

void MaskWalk::in_string(const Recognizer::Item& item, uint32_t span) {
  allow_all(span >= trie_.longest() ? trie_.inside() : trie_.plain(span));
  for (const Nodes* nodes : {&trie_.uneven(), &trie_.closing()}) {
    path_.clear();
    by_terminal(*nodes, 0, uint32_t(nodes->size()), item, item.lex);
  }
}

void MaskWalk::by_terminal(const Nodes& nodes, uint32_t at, uint32_t end, const Recognizer::Item& item, LexId lex) {
  for (; at < end; at = nodes[at].end) {
    const TokenTrie::Node& node = nodes[at];
    const LexId next = lexicon_.step(lex, node.byte);
    if (next == Lexicon::kDead) continue;
    const bool deeper = node.end > at + 1, accepting = lexicon_.accepting(next);
    const bool captures = recognizer_.captures(item);
    if (captures) path_ += char(node.byte);
    StateId after = Recognizer::kDead;
    if (accepting && (deeper || !lexicon_.continues(next))) {
      std::string text;
      if (captures) text = std::string(recognizer_.captured(item)) + path_;
      after = recognizer_.complete(item, next, text);
    }
    const bool goes_on = lexicon_.continues(next);
    if (node.token >= 0 && (goes_on || after != Recognizer::kDead)) allow(node.token);
    if (deeper && after != Recognizer::kDead) {
      std::string saved;
      std::swap(saved, path_);
      by_state(nodes, at + 1, node.end, after);
      std::swap(saved, path_);
    }
    if (deeper && goes_on) by_terminal(nodes, at + 1, node.end, item, next);
    if (captures) path_.pop_back();
  }
}

void MaskWalk::by_state(const Nodes& nodes, uint32_t at, uint32_t end, StateId state) {
  if (recognizer_.items(state).size() == 1) {
    const Recognizer::Item item = recognizer_.items(state)[0];
    return by_terminal(nodes, at, end, item, item.lex);
  }
  for (; at < end; at = nodes[at].end) {
    const StateId next = recognizer_.step(state, nodes[at].byte);
    if (next == Recognizer::kDead) continue;
    if (nodes[at].token >= 0) allow(nodes[at].token);
    if (nodes[at].end > at + 1) by_state(nodes, at + 1, nodes[at].end, next);
  }
}

}  // namespace unisono::grammar

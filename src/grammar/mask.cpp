#include "grammar/mask.h"

#include <bit>
#include <utility>

namespace unisono::grammar {

namespace {

constexpr size_t kFewItems = 4;
constexpr int kManyBytes = 64;  // that may come first: most tokens will fit

}  // namespace

void MaskWalk::allow(const Nodes& in, TokenId token) {
  auto set = [&](TokenId id) { bits_[size_t(id) / 64] |= uint64_t(1) << (size_t(id) % 64); };
  if (in.groups) {
    if (token >= 0)
      for (TokenId id : trie_.group(token)) set(id);
    return;
  }
  for (; token >= 0; token = trie_.next_alias(token)) set(token);
}

void MaskWalk::allow_all(std::span<const uint64_t> mask) {
  for (size_t i = 0; i < mask.size(); ++i) bits_[i] |= mask[i];
}

void MaskWalk::run(StateId state) {
  // Each item is walked alone: what one allows, the state allows.
  const std::vector<Item> items(recognizer_.items(state).begin(), recognizer_.items(state).end());
  size_t others = 0;
  for (const Item& item : items) {
    if (lexicon_.in_string(item.lex))
      in_string(item);
    else
      ++others;
  }
  const Nodes all{trie_.all()};
  if (others > kFewItems && others == items.size()) return by_state(all, 0, uint32_t(trie_.all().size()), state);
  for (const Item& item : items)
    if (!lexicon_.in_string(item.lex)) from_root(item);
}

// Tokens without a quote stay inside the string, so that only the terminal decides; the others may lead anywhere.
void MaskWalk::in_string(const Item& item) {
  path_.clear();
  inner(item.lex);
  if (lexicon_.full_span(item.lex) < trie_.longest() || recognizer_.captures(item)) {
    alike_ = recognizer_.captures(item) && lexicon_.free_span(item.lex) >= trie_.longest();
    any_alike_ = Recognizer::kDead;
    by_terminal({trie_.closing()}, 0, uint32_t(trie_.closing().size()), item, item.lex);
    alike_ = false;
    return;
  }
  const StateId next = recognizer_.complete(item, lexicon_.step(item.lex, '"'), {});
  if (next == Recognizer::kDead) return;
  allow_all(trie_.closed());
  by_state({trie_.after_quote(), true}, 0, uint32_t(trie_.after_quote().size()), next);
}

void MaskWalk::inner(LexId lex) {
  const uint32_t span = lexicon_.free_span(lex);
  if (span >= trie_.longest()) return allow_all(trie_.inside());
  if (const auto* known = recognizer_.inner_mask(lex, trie_.serial())) return allow_all(*known);
  std::vector<uint64_t> out;
  if (span > 0 && span <= trie_.max_plain()) {
    out.assign(trie_.plain(span).begin(), trie_.plain(span).end());
  } else {
    int bytes = 0;
    for (uint64_t word : lexicon_.first_bytes(lex)) bytes += std::popcount(word);
    const bool clearing = bytes >= kManyBytes && trie_.longest() <= trie_.max_plain();
    if (clearing)
      out.assign(trie_.plain(trie_.max_plain()).begin(), trie_.plain(trie_.max_plain()).end());
    else
      out.assign(bits_.size(), 0);
    walk_plain(0, uint32_t(trie_.plain_nodes().size()), lex, clearing, out);
  }
  // What isn't plain has no quote either: no terminal ends within it.
  std::vector<uint64_t> uneven(bits_.size(), 0);
  const std::span<uint64_t> bits = std::exchange(bits_, uneven);
  by_terminal({trie_.uneven()}, 0, uint32_t(trie_.uneven().size()), Item{lex, RuleTable::kEnd, 0, 0}, lex);
  bits_ = bits;
  for (size_t i = 0; i < out.size(); ++i) out[i] |= uneven[i];
  recognizer_.keep_inner_mask(lex, trie_.serial(), out);
  allow_all(out);
}

// clearing: `out` holds all plain tokens, and those that don't fit are taken away; otherwise those that fit are added.
// Below a state from which everything fits nothing needs to be looked at.
void MaskWalk::walk_plain(uint32_t at, uint32_t end, LexId lex, bool clearing, std::vector<uint64_t>& out) {
  const auto& nodes = trie_.plain_nodes();
  auto below = [&](uint32_t node, bool on) {
    for (uint32_t i = trie_.plain_first(node); i < trie_.plain_first(nodes[node].end); ++i) {
      const auto id = size_t(trie_.plain_tokens()[i]);
      const uint64_t bit = uint64_t(1) << (id % 64);
      if (on)
        out[id / 64] |= bit;
      else
        out[id / 64] &= ~bit;
    }
  };
  for (; at < end; at = nodes[at].end) {
    const LexId next = lexicon_.step(lex, nodes[at].byte);
    if (next == Lexicon::kDead) {
      if (clearing) below(at, false);
    } else if (lexicon_.free_span(next) >= trie_.longest()) {
      if (!clearing) below(at, true);
    } else {
      if (!clearing)
        for (TokenId id = nodes[at].token; id >= 0; id = trie_.next_alias(id))
          out[size_t(id) / 64] |= uint64_t(1) << (size_t(id) % 64);
      if (nodes[at].end > at + 1) walk_plain(at + 1, nodes[at].end, next, clearing, out);
    }
  }
}

void MaskWalk::from_root(const Item& item) {
  path_.clear();
  const Nodes all{trie_.all()};
  const Lexicon::Bytes first = lexicon_.first_bytes(item.lex);
  for (size_t word = 0; word < first.size(); ++word)
    for (uint64_t left = first[word]; left != 0; left &= left - 1) {
      const uint32_t at = trie_.root_child(uint8_t(word * 64 + size_t(std::countr_zero(left))));
      if (at < trie_.all().size()) one_step(all, at, item, item.lex);
    }
}

StateId MaskWalk::after(const Nodes& in, uint32_t at, const Item& item, LexId lex) {
  if (recognizer_.captures(item)) {
    const bool alike = alike_ && &in.nodes == &trie_.closing() && trie_.quotes_behind(at) < 2;
    if (alike && any_alike_ != Recognizer::kDead) return any_alike_;
    const StateId out = recognizer_.complete(item, lex, std::string(recognizer_.captured(item)) + path_);
    if (alike) any_alike_ = out;
    return out;
  }
  Known& slot = known_[(item.target ^ item.frame ^ lex) % known_.size()];
  if (slot.lex != lex || slot.target != item.target || slot.frame != item.frame)
    slot = {item.target, item.frame, lex, recognizer_.complete(item, lex, {})};
  return slot.after;
}

void MaskWalk::by_terminal(const Nodes& in, uint32_t at, uint32_t end, const Item& item, LexId lex) {
  if (!recognizer_.captures(item) && !lexicon_.only_literal(lex).empty()) return by_literal(in, at, end, item, lex);
  for (; at < end; at = in.nodes[at].end) one_step(in, at, item, lex);
}

void MaskWalk::one_step(const Nodes& in, uint32_t at, const Item& item, LexId lex) {
  const TokenTrie::Node& node = in.nodes[at];
  const LexId next = lexicon_.step(lex, node.byte);
  if (next == Lexicon::kDead) return;
  const bool deeper = node.end > at + 1, captures = recognizer_.captures(item);
  const bool goes_on = lexicon_.continues(next);
  if (captures) path_ += char(node.byte);
  StateId then = Recognizer::kDead;
  if (lexicon_.accepting(next) && (deeper || !goes_on)) then = after(in, at, item, next);
  if (node.token >= 0 && (goes_on || then != Recognizer::kDead)) allow(in, node.token);
  if (deeper && then != Recognizer::kDead) {
    const std::string before = std::exchange(path_, {});
    const bool alike = std::exchange(alike_, false);
    by_state(in, at + 1, node.end, then);
    alike_ = alike;
    path_ = before;
  }
  if (deeper && goes_on) by_terminal(in, at + 1, node.end, item, next);
  if (captures) path_.pop_back();
}

// A single literal: one way down.
void MaskWalk::by_literal(const Nodes& in, uint32_t at, uint32_t end, const Item& item, LexId lex) {
  const std::string_view rest = lexicon_.only_literal(lex);
  for (size_t i = 0; i < rest.size(); ++i) {
    const auto byte = uint8_t(rest[i]);
    if (at == 0 && end == trie_.all().size() && &in.nodes == &trie_.all()) at = trie_.root_child(byte);
    while (at < end && in.nodes[at].byte < byte) at = in.nodes[at].end;
    if (at >= end || in.nodes[at].byte != byte) return;
    if (i + 1 < rest.size()) {
      allow(in, in.nodes[at].token);
      end = in.nodes[at].end;
      ++at;
    }
  }
  // The last byte completes it.
  for (size_t i = 0; i + 1 < rest.size(); ++i) lex = lexicon_.step(lex, uint8_t(rest[i]));
  const StateId then = after(in, at, item, lexicon_.step(lex, uint8_t(rest.back())));
  if (then == Recognizer::kDead) return;
  allow(in, in.nodes[at].token);
  if (in.nodes[at].end > at + 1) by_state(in, at + 1, in.nodes[at].end, then);
}

void MaskWalk::by_state(const Nodes& in, uint32_t at, uint32_t end, StateId state) {
  if (recognizer_.items(state).size() == 1) {
    const Item item = recognizer_.items(state)[0];
    if (at == 0 && end == trie_.all().size() && &in.nodes == &trie_.all()) return from_root(item);
    return by_terminal(in, at, end, item, item.lex);
  }
  for (; at < end; at = in.nodes[at].end) {
    const StateId next = recognizer_.step(state, in.nodes[at].byte);
    if (next == Recognizer::kDead) continue;
    if (in.nodes[at].token >= 0) allow(in, in.nodes[at].token);
    if (in.nodes[at].end > at + 1) by_state(in, at + 1, in.nodes[at].end, next);
  }
}

}  // namespace unisono::grammar

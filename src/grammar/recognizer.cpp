#include "grammar/recognizer.h"

#include <algorithm>

#include "base/check.h"

namespace unisono::grammar {

namespace {

constexpr size_t kFewEntered = 24;          // searched one by one
constexpr size_t kMaxMaskBytes = 16 << 20;  // kept per grammar
constexpr size_t kMaxReturns = 4096;        // of one frame
constexpr uint32_t kMaxTail = 64;           // returns that a call in tail position takes over

uint64_t mix(uint64_t h, uint64_t v) {
  h = (h ^ v) * 0x9E3779B97F4A7C15ull;
  return h ^ (h >> 29);
}

}  // namespace

void Recognizer::reset() {
  states_.emplace_back();     // kDead
  frames_.push_back({0, 0});  // kRoot
  texts_.emplace_back();      // no capture
  texts_.emplace_back();      // the empty text
  text_index_.emplace(texts_[1], 1u);
}

StateId Recognizer::start(NodeId root) {
  begin_closure();
  enter(root, kRoot);
  return end_closure();
}

StateId Recognizer::run(StateId state, std::string_view bytes) {
  for (char b : bytes) {
    if (state == kDead) break;
    state = step(state, uint8_t(b));
  }
  return state;
}

StateId Recognizer::step_slowly(StateId state, uint8_t byte) {
  begin_closure();
  // Closing may add items_, so they are named by index.
  const uint32_t begin = states_[state].begin, count = states_[state].count;
  for (uint32_t i = 0; i < count; ++i) read_on(Item(items_[begin + i]), byte);
  const StateId next = end_closure();
  State& s = states_[state];
  if (!s.row && s.memo_byte < 0) {
    s.memo_byte = byte;
    s.memo_next = next;
    return next;
  }
  if (!s.row) {
    s.row = std::make_unique<StateId[]>(256);
    std::fill_n(s.row.get(), 256, kUnknown);
    s.row[s.memo_byte] = s.memo_next;
    bytes_ += 1024;
  }
  return s.row[byte] = next;
}

void Recognizer::read_on(const Item& item, uint8_t byte) {
  const LexId lex = lexicon_.step(item.lex, byte);
  if (lex == Lexicon::kDead) return;
  uint32_t capture = item.capture;
  if (capture != 0) capture = intern_text(texts_[capture] + char(byte));
  if (lexicon_.accepting(lex)) finish(item, lex, texts_[capture]);
  if (lexicon_.continues(lex)) next_.push_back({lex, item.target, item.frame, capture});
}

StateId Recognizer::complete(const Item& item, LexId lex, std::string_view text) {
  begin_closure();
  finish(item, lex, text);
  return end_closure();
}

void Recognizer::finish(const Item& item, LexId lex, std::string_view text) {
  NodeId target = item.target;
  RuleNode& node = rules_.peek(target);
  if (node.resolve != RuleNode::Resolve::none) {
    target = node.source->resolve(node, lex, text);
    if (target == RuleTable::kNowhere) return;
  }
  enter(target, item.frame);
  close();
}

void Recognizer::begin_closure() {
  next_.clear();
  calls_.clear();
  todo_.clear();
  entered_.clear();
  entered_index_.clear();
  call_index_.clear();
  accepts_ = overflow_ = false;
}

void Recognizer::enter(NodeId node, uint32_t frame) {
  const std::pair<NodeId, uint32_t> entry(node, frame);
  if (entered_.size() < kFewEntered) {
    if (std::find(entered_.begin(), entered_.end(), entry) != entered_.end()) return;
  } else {
    if (entered_index_.empty())
      for (const auto& e : entered_) entered_index_.emplace((uint64_t(e.first) << 32) | e.second, true);
    if (!entered_index_.emplace((uint64_t(node) << 32) | frame, true).second) return;
    if (entered_.size() > kMaxWork) {
      overflow_ = true;
      return;
    }
  }
  entered_.push_back(entry);
  todo_.push_back(entry);
}

void Recognizer::close() {
  while (!todo_.empty()) {
    const auto [node, frame] = todo_.back();
    todo_.pop_back();
    visit(node, frame);
  }
}

void Recognizer::visit(NodeId id, uint32_t frame) {
  RuleNode& node = rules_.at(id);
  if (node.final) pop(frame);
  for (const RuleEdge& edge : node.edges) {
    switch (edge.kind) {
      case RuleEdge::Kind::free: enter(edge.target, frame); break;
      case RuleEdge::Kind::terminal: {
        const bool wants_text = rules_.peek(edge.target).resolve == RuleNode::Resolve::text;
        const Item item{edge.what, edge.target, frame, wants_text ? 1u : 0u};
        if (lexicon_.accepting(edge.what)) {
          check(rules_.peek(edge.target).resolve == RuleNode::Resolve::none, "an empty terminal decides nothing");
          enter(edge.target, frame);
        }
        if (lexicon_.continues(edge.what)) next_.push_back(item);
        break;
      }
      case RuleEdge::Kind::call: {
        auto [it, fresh] = call_index_.try_emplace(edge.what, uint32_t(calls_.size()));
        if (fresh) calls_.push_back({edge.what});
        const uint32_t index = it->second;
        std::vector<Return>& returns = calls_[index].returns;
        const Return back{edge.target, frame};
        if (std::find(returns.begin(), returns.end(), back) == returns.end()) {
          if (returns.size() >= kMaxReturns)
            overflow_ = true;
          else
            returns.push_back(back);
        }
        if (fresh)
          enter(edge.what, kTemporary | index);
        else if (calls_[index].empty)
          enter(edge.target, frame);
        break;
      }
    }
  }
}

void Recognizer::pop(uint32_t frame) {
  if (frame == kRoot) {
    accepts_ = true;
    return;
  }
  if (frame & kTemporary) {
    Call& call = calls_[frame & ~kTemporary];
    call.empty = true;
    for (const Return& r : call.returns) enter(r.node, r.frame);
    return;
  }
  const Frame f = frames_[frame];
  for (uint32_t i = 0; i < f.count; ++i) enter(returns_[f.begin + i].node, returns_[f.begin + i].frame);
}

StateId Recognizer::end_closure() {
  close();
  if (overflow_) return kDead;
  for (Item& item : next_) item.frame = permanent(item.frame);
  std::sort(next_.begin(), next_.end());
  next_.erase(std::unique(next_.begin(), next_.end()), next_.end());
  if (next_.empty() && !accepts_) return kDead;
  return intern_state(next_, accepts_);
}

// Parents first, without recursion: calls can be nested as deep as a grammar has rules.
uint32_t Recognizer::permanent(uint32_t frame) {
  if (!(frame & kTemporary)) return frame;
  struct Open {
    uint32_t call;
    size_t next = 0;  // of its returns
    std::vector<Return> out{};
  };
  std::vector<Open> open;
  if (!calls_[frame & ~kTemporary].interned) open.push_back({frame & ~kTemporary});
  while (!open.empty()) {
    check(open.size() <= calls_.size(), "no rule begins with itself");
    Open& top = open.back();
    Call& call = calls_[top.call];
    if (top.next == call.returns.size()) {
      call.frame = intern_frame(std::move(top.out));
      call.interned = true;
      open.pop_back();
      continue;
    }
    const Return r = call.returns[top.next];
    if ((r.frame & kTemporary) && !calls_[r.frame & ~kTemporary].interned) {
      open.push_back({r.frame & ~kTemporary});
      continue;
    }
    ++top.next;
    const uint32_t parent = r.frame & kTemporary ? calls_[r.frame & ~kTemporary].frame : r.frame;
    const RuleNode& node = rules_.at(r.node);
    const bool tail = node.final && node.edges.empty();
    // What a long chain of calls returns to would be copied from each to the next.
    if (tail && parent != kRoot && frames_[parent].count <= kMaxTail) {
      const Frame f = frames_[parent];
      top.out.insert(top.out.end(), returns_.begin() + f.begin, returns_.begin() + f.begin + f.count);
    } else {
      top.out.push_back({tail ? RuleTable::kEnd : r.node, parent});
    }
  }
  return calls_[frame & ~kTemporary].frame;
}

uint32_t Recognizer::intern_frame(std::vector<Return> returns) {
  std::sort(returns.begin(), returns.end());
  returns.erase(std::unique(returns.begin(), returns.end()), returns.end());
  if (returns.size() == 1 && returns[0] == Return{RuleTable::kEnd, kRoot}) return kRoot;
  uint64_t h = returns.size();
  for (const Return& r : returns) h = mix(mix(h, r.node), r.frame);
  auto [from, to] = frame_index_.equal_range(h);
  for (auto it = from; it != to; ++it) {
    const Frame f = frames_[it->second];
    if (f.count == returns.size() && std::equal(returns.begin(), returns.end(), returns_.begin() + f.begin))
      return it->second;
  }
  const auto id = uint32_t(frames_.size());
  frames_.push_back({uint32_t(returns_.size()), uint32_t(returns.size())});
  returns_.insert(returns_.end(), returns.begin(), returns.end());
  frame_index_.emplace(h, id);
  bytes_ += 64 + returns.size() * sizeof(Return);
  return id;
}

StateId Recognizer::intern_state(std::vector<Item>& items, bool accepting) {
  uint64_t h = accepting ? 2 : 1;
  for (const Item& i : items) h = mix(mix(mix(mix(h, i.lex), i.target), i.frame), i.capture);
  auto [from, to] = state_index_.equal_range(h);
  for (auto it = from; it != to; ++it) {
    const State& s = states_[it->second];
    if (s.accepting == accepting && s.count == items.size() &&
        std::equal(items.begin(), items.end(), items_.begin() + s.begin))
      return it->second;
  }
  const auto id = StateId(states_.size());
  State& s = states_.emplace_back();
  s.begin = uint32_t(items_.size());
  s.count = uint32_t(items.size());
  s.accepting = accepting;
  items_.insert(items_.end(), items.begin(), items.end());
  state_index_.emplace(h, id);
  bytes_ += sizeof(State) + 48 + items.size() * sizeof(Item);
  return id;
}

uint32_t Recognizer::intern_text(std::string_view text) {
  auto it = text_index_.find(text);
  if (it != text_index_.end()) return it->second;
  const auto id = uint32_t(texts_.size());
  texts_.emplace_back(text);
  text_index_.emplace(texts_.back(), id);
  bytes_ += 96 + text.size();
  return id;
}

const std::vector<uint64_t>* Recognizer::mask(StateId state, uint64_t vocabulary) const {
  if (vocabulary != masked_vocabulary_) return nullptr;
  auto it = masks_.find(state);
  return it == masks_.end() ? nullptr : &it->second;
}

void Recognizer::keep_mask(StateId state, uint64_t vocabulary, std::span<const uint64_t> bits) {
  if (vocabulary != masked_vocabulary_ || mask_bytes_ + bits.size_bytes() > kMaxMaskBytes) {
    bytes_ -= mask_bytes_;
    mask_bytes_ = 0;
    masks_.clear();
    masked_vocabulary_ = vocabulary;
  }
  if (masks_.try_emplace(state, bits.begin(), bits.end()).second) {
    mask_bytes_ += bits.size_bytes() + 64;
    bytes_ += bits.size_bytes() + 64;
  }
}

uint32_t Recognizer::adopt_frame(const Recognizer& other, uint32_t frame, std::unordered_map<uint32_t, uint32_t>& known) {
  if (frame == kRoot) return kRoot;
  // Parents were interned before their children, so their numbers are smaller: from the bottom up.
  std::vector<uint32_t> needed{frame};
  for (size_t i = 0; i < needed.size(); ++i) {
    const Frame f = other.frames_[needed[i]];
    for (uint32_t k = 0; k < f.count; ++k) {
      const uint32_t parent = other.returns_[f.begin + k].frame;
      if (parent != kRoot && known.try_emplace(parent, 0).second) needed.push_back(parent);
    }
  }
  std::sort(needed.begin(), needed.end());
  for (uint32_t n : needed) {
    const Frame f = other.frames_[n];
    std::vector<Return> returns(other.returns_.begin() + f.begin, other.returns_.begin() + f.begin + f.count);
    for (Return& r : returns)
      if (r.frame != kRoot) r.frame = known[r.frame];
    known[n] = intern_frame(std::move(returns));
  }
  return known[frame];
}

StateId Recognizer::adopt(const Recognizer& other, StateId state) {
  if (state == kDead) return kDead;
  std::vector<Item> items(other.items(state).begin(), other.items(state).end());
  for (Item& item : items) {
    std::unordered_map<uint32_t, uint32_t> known;
    item.frame = adopt_frame(other, item.frame, known);
    if (item.capture != 0) item.capture = intern_text(other.texts_[item.capture]);
  }
  std::sort(items.begin(), items.end());
  return intern_state(items, other.accepting(state));
}

}  // namespace unisono::grammar

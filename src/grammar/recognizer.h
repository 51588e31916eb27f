// Where an answer stands in a grammar: all ways to read it so far, at once. A generalised recogniser over bytes whose
// states are interned by content, so that equal situations are one state, whatever led there: what was learnt about one
// (its successors, its mask) holds for the other. Stacks are shared; a call in tail position pushes nothing.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "grammar/lexicon.h"
#include "grammar/rules.h"

namespace unisono::grammar {

using StateId = uint32_t;

class Recognizer {
 public:
  static constexpr StateId kDead = 0;

  // One terminal under way.
  struct Item {
    LexId lex;
    NodeId target;     // after it
    uint32_t frame;    // where that node's rule returns to
    uint32_t capture;  // its text so far, where the target wants it; 0: it doesn't
    auto operator<=>(const Item&) const = default;
  };

  Recognizer(Lexicon& lexicon, RuleTable& rules) : lexicon_(lexicon), rules_(rules) { reset(); }

  // The state before any byte; kDead: the grammar holds no text.
  StateId start(NodeId root);
  StateId step(StateId state, uint8_t byte) {
    const State& s = states_[state];
    if (s.row) {
      const StateId next = s.row[byte];
      if (next != kUnknown) return next;
    } else if (s.memo_byte == byte) {
      return s.memo_next;
    }
    return step_slowly(state, byte);
  }
  StateId run(StateId state, std::string_view bytes);
  // The last step met more places than are looked at, and led to kDead therefore.
  bool overflowed() const { return overflow_; }
  bool accepting(StateId state) const { return states_[state].accepting; }
  std::span<const Item> items(StateId state) const { return {items_.data() + states_[state].begin, states_[state].count}; }
  // The state right after `item`'s terminal was completed in lexicon state `lex`; text: the whole terminal's, as captured.
  StateId complete(const Item& item, LexId lex, std::string_view text);
  std::string_view captured(const Item& item) const { return texts_[item.capture]; }
  bool captures(const Item& item) const { return item.capture != 0; }

  // Masks that were computed for states.
  const std::vector<uint64_t>* mask(StateId state, uint64_t vocabulary) const;
  void keep_mask(StateId state, uint64_t vocabulary, std::span<const uint64_t> bits);
  // The same for what stays inside a JSON string, by its terminal's state.
  const std::vector<uint64_t>* inner_mask(LexId lex, uint64_t vocabulary) const { return mask(kInner | lex, vocabulary); }
  void keep_inner_mask(LexId lex, uint64_t vocabulary, std::span<const uint64_t> bits) {
    keep_mask(kInner | lex, vocabulary, bits);
  }

  // Roughly, of all that was learnt.
  size_t bytes() const { return bytes_; }
  // The same situation in another recogniser of the same grammar.
  StateId adopt(const Recognizer& other, StateId state);

 private:
  static constexpr StateId kUnknown = UINT32_MAX;
  static constexpr uint32_t kTemporary = 0x80000000u, kInner = 0x80000000u;
  static constexpr uint32_t kRoot = 0;
  static constexpr size_t kMaxWork = 50'000;  // nodes entered in one step

  struct Return {
    NodeId node;
    uint32_t frame;
    auto operator<=>(const Return&) const = default;
  };
  struct State {
    uint32_t begin = 0, count = 0;
    bool accepting = false;
    int16_t memo_byte = -1;
    StateId memo_next = 0;
    std::unique_ptr<StateId[]> row{};
  };
  struct Frame {
    uint32_t begin, count;
  };
  // A rule that was called at the place being closed.
  struct Call {
    NodeId rule;
    uint32_t frame = 0;
    bool empty = false, interned = false;  // the rule may be empty
    std::vector<Return> returns{};
  };

  void reset();
  StateId step_slowly(StateId state, uint8_t byte);
  void begin_closure();
  void read_on(const Item& item, uint8_t byte);
  void finish(const Item& item, LexId lex, std::string_view text);
  void enter(NodeId node, uint32_t frame);
  void close();
  void visit(NodeId node, uint32_t frame);
  void pop(uint32_t frame);
  StateId end_closure();
  uint32_t permanent(uint32_t frame);
  uint32_t intern_frame(std::vector<Return> returns);
  StateId intern_state(std::vector<Item>& items, bool accepting);
  uint32_t intern_text(std::string_view text);
  uint32_t adopt_frame(const Recognizer& other, uint32_t frame, std::unordered_map<uint32_t, uint32_t>& known);

  Lexicon& lexicon_;
  RuleTable& rules_;
  std::deque<State> states_{};
  std::vector<Item> items_{};
  std::deque<Frame> frames_{};
  std::vector<Return> returns_{};
  std::deque<std::string> texts_{};
  std::unordered_multimap<uint64_t, StateId> state_index_{};
  std::unordered_multimap<uint64_t, uint32_t> frame_index_{};
  std::unordered_map<std::string_view, uint32_t> text_index_{};
  std::unordered_map<StateId, std::vector<uint64_t>> masks_{};
  uint64_t masked_vocabulary_ = 0;
  size_t bytes_ = 0, mask_bytes_ = 0;

  // Of the closure under way.
  std::vector<Item> next_{};
  std::vector<Call> calls_{};
  std::vector<std::pair<NodeId, uint32_t>> todo_{}, entered_{};
  std::unordered_map<uint64_t, bool> entered_index_{};
  std::unordered_map<NodeId, uint32_t> call_index_{};
  bool accepts_ = false, overflow_ = false;
};

}  // namespace unisono::grammar

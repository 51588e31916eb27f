// The terminals of a grammar as deterministic byte automata: lists of literals, regular expressions over UTF-8 text, JSON
// strings whose decoded content is regular, and numbers. Every state but kDead has at least one way to completion. It
// knows bytes, not what follows a terminal.
#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "grammar/number.h"
#include "grammar/regex.h"

namespace unisono::grammar {

using LexId = uint32_t;

class Lexicon {
 public:
  static constexpr LexId kDead = 0;

  explicit Lexicon(RegexPool& pool);

  // Where a terminal begins; kDead: no text belongs to it.
  LexId literals(std::vector<std::string> texts);
  // The same for texts that are sorted, all different, and outlive the lexicon; equal calls aren't the same terminal.
  LexId sorted_literals(std::vector<std::string_view> texts);
  LexId regex(RegexId content);        // UTF-8
  LexId json_string(RegexId content);  // with its quotes, any escapes JSON has, no lone surrogates
  LexId number(const NumberSet& set);

  LexId step(LexId state, uint8_t byte) {
    const Hot& s = hot_[state];
    if (s.row) {
      const LexId next = s.row[byte];
      if (next != kUnknown) return next;
    }
    return step_slowly(state, byte);
  }
  bool accepting(LexId state) const { return hot_[state].accepting; }
  // More bytes may follow.
  bool continues(LexId state) { return hot_[state].continues != 2 ? hot_[state].continues != 0 : ask_continues(state); }
  // In an accepting state of literals: which one it was.
  std::string_view literal(LexId state) const { return lists_[states_[state].a][states_[state].b]; }
  // Inside a JSON string between two characters: any n plain characters may follow, n in 0..free_span; 0: says nothing.
  uint32_t free_span(LexId state) { return hot_[state].span != kNotAsked ? hot_[state].span : ask_free_span(state); }
  // Inside a JSON string between two characters.
  bool in_string(LexId state) const { return states_[state].kind == Kind::body; }
  // Inside a JSON string that holds every text of at most n characters: n; otherwise 0.
  uint32_t full_span(LexId state);
  // The rest of the only literal left; empty: this isn't such a state.
  std::string_view only_literal(LexId state) const {
    const State& s = states_[state];
    if (s.kind != Kind::list || s.c - s.b != 1) return {};
    return lists_[s.a][s.b].substr(s.d);
  }
  // The bytes that may come next, where that is known without trying: 256 bits.
  using Bytes = std::array<uint64_t, 4>;
  const Bytes& first_bytes(LexId state);

  RegexPool& pool() { return pool_; }
  size_t row_bytes() const { return rows_ * 256 * sizeof(LexId); }
  // Forgets what can be computed again: all rows.
  void drop_rows();

 private:
  static constexpr LexId kUnknown = UINT32_MAX;
  // raw: regular text. body: in a JSON string. skip: within a character that was decided at its first byte.
  // partial: within a character; a: expression, b: bits so far, c: bytes left, d: least value. The string's escapes: slash
  // after \, hex within \u, low_* between the halves of a pair.
  enum class Kind : uint8_t {
    dead,
    list,
    raw,
    raw_skip,
    raw_partial,
    open,
    body,
    body_skip,
    body_partial,
    slash,
    hex,
    low_slash,
    low_u,
    low_hex,
    done,
    number
  };
  static constexpr uint32_t kNotAsked = UINT32_MAX - 1;
  // What walks over a vocabulary touch.
  struct Hot {
    LexId* row = nullptr;
    uint32_t span = kNotAsked;
    bool accepting = false;
    uint8_t continues = 2;  // 2: not asked yet
  };
  struct State {
    Kind kind = Kind::dead;
    uint32_t a = 0, b = 0, c = 0, d = 0;
    std::unique_ptr<LexId[]> row{};
    std::unique_ptr<Bytes> first{};
  };
  struct Key {
    Kind kind;
    uint32_t a, b, c, d;
    bool operator==(const Key&) const = default;
  };
  struct KeyHash {
    size_t operator()(const Key& k) const;
  };

  LexId state(Kind kind, uint32_t a, uint32_t b = 0, uint32_t c = 0, uint32_t d = 0);
  LexId step_slowly(LexId id, uint8_t byte);
  bool ask_continues(LexId id);
  uint32_t ask_free_span(LexId id);
  LexId* give_row(LexId id, std::unique_ptr<LexId[]> row);
  LexId step_list(const State& s, uint8_t byte);
  LexId step_number(const State& s, uint8_t byte);
  LexId step_partial(const State& s, uint8_t byte);
  LexId step_escape(const State& s, uint8_t byte);
  LexId after_char(Kind kind, RegexId content, uint32_t c);
  void fill_text_row(LexId id);
  bool range_alive(RegexId content, uint32_t first, uint32_t last);

  RegexPool& pool_;
  std::deque<State> states_{};
  std::unordered_map<Key, LexId, KeyHash> index_{};
  std::vector<Hot> hot_{};
  std::deque<std::vector<std::string_view>> lists_{};
  std::deque<std::string> list_texts_{};
  std::deque<NumberSet> numbers_{};
  std::unordered_map<std::string, uint32_t> number_index_{}, list_index_{}, text_index_{};
  std::deque<std::string> texts_{};
  size_t rows_ = 0;
};

}  // namespace unisono::grammar

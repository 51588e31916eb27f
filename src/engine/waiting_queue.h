// Who waits, and whose turn it is: by priority, then those who gave way, then the owners in turn, each with its oldest.
// Knows neither blocks nor tokens.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "engine/sequence.h"

namespace unisono::engine {

// Whose sequences they are. Exists while it has any.
struct Owner {
  uint64_t last_turn = 0;  // grows from turn to turn; 0: had none
  int n_sequences = 0;
};

// The owners' turns. A sequence's owner is found once, when it comes.
class Turns {
 public:
  void enter(Sequence& sequence);
  void leave(Sequence& sequence);
  void take(Sequence& sequence) { sequence.turn->last_turn = ++n_turns_; }
  int n_owners() const { return static_cast<int>(owners_.size()); }

 private:
  std::map<std::string, Owner, std::less<>> owners_{};
  uint64_t n_turns_ = 0;
};

// By priority, then by the owner whose turn is longer ago. Both must have entered.
bool sooner(const Sequence& a, const Sequence& b);

class WaitingQueue {
 public:
  void add(Sequence& sequence);
  // It ran before: ahead of all of its priority.
  void add_first(Sequence& sequence);
  // Ignores who isn't here.
  void remove(Sequence& sequence);

  Sequence* next() const;  // null: nobody waits
  int size() const { return size_; }
  std::vector<const Sequence*> all() const;

 private:
  struct Level {
    std::deque<Sequence*> gave_way{};
    std::map<const Owner*, std::deque<Sequence*>> new_ones{};  // no empty ones
  };
  std::map<int, Level> levels_{};  // by priority, no empty ones
  int size_ = 0;
};

}  // namespace unisono::engine

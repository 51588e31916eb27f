#include "engine/waiting_queue.h"

#include <tuple>

#include "base/check.h"

namespace unisono::engine {

void Turns::enter(Sequence& sequence) {
  auto found = owners_.find(sequence.owner);
  if (found == owners_.end()) found = owners_.emplace(std::string(sequence.owner), Owner{}).first;
  sequence.turn = &found->second;
  sequence.turn->n_sequences++;
}

void Turns::leave(Sequence& sequence) {
  check(sequence.turn != nullptr && sequence.turn->n_sequences > 0, "who leaves has entered");
  sequence.turn->n_sequences--;
  if (sequence.turn->n_sequences == 0) owners_.erase(owners_.find(sequence.owner));
  sequence.turn = nullptr;
}

bool sooner(const Sequence& a, const Sequence& b) {
  return std::tie(a.priority, a.turn->last_turn) < std::tie(b.priority, b.turn->last_turn);
}

void WaitingQueue::add(Sequence& sequence) {
  levels_[sequence.priority].new_ones[sequence.turn].push_back(&sequence);
  size_++;
}

void WaitingQueue::add_first(Sequence& sequence) {
  levels_[sequence.priority].gave_way.push_front(&sequence);
  size_++;
}

void WaitingQueue::remove(Sequence& sequence) {
  const auto level = levels_.find(sequence.priority);
  if (level == levels_.end()) return;
  auto& [gave_way, new_ones] = level->second;
  if (std::erase(gave_way, &sequence) > 0) {
    size_--;
  } else if (const auto owned = new_ones.find(sequence.turn); owned != new_ones.end()) {
    size_ -= static_cast<int>(std::erase(owned->second, &sequence));
    if (owned->second.empty()) new_ones.erase(owned);
  }
  if (gave_way.empty() && new_ones.empty()) levels_.erase(level);
}

Sequence* WaitingQueue::next() const {
  if (levels_.empty()) return nullptr;
  const auto& [gave_way, new_ones] = levels_.begin()->second;
  if (!gave_way.empty()) return gave_way.front();
  Sequence* best = nullptr;
  for (const auto& [owner, sequences] : new_ones) {
    Sequence* first = sequences.front();
    if (best == nullptr || std::tie(owner->last_turn, first->arrival) < std::tie(best->turn->last_turn, best->arrival))
      best = first;
  }
  return best;
}

std::vector<const Sequence*> WaitingQueue::all() const {
  std::vector<const Sequence*> out;
  for (const auto& [priority, level] : levels_) {
    out.insert(out.end(), level.gave_way.begin(), level.gave_way.end());
    for (const auto& [owner, sequences] : level.new_ones) out.insert(out.end(), sequences.begin(), sequences.end());
  }
  return out;
}

}  // namespace unisono::engine

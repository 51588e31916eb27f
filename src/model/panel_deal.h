// Deals the panels of a product to the workers while they work, in pairs, as kernels take them: each takes its share from
// the front, then what is left of the others' from their ends, half of it at a time, so that none waits for a slower one
// and few steps are small. Decides only who computes what.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <utility>
#include <vector>

#include "base/thread_team.h"

namespace unisono::model {

class PanelDeal {
 public:
  static constexpr int kPair = 2;  // panels
  static int pairs(int panels) { return (panels + kPair - 1) / kPair; }

  // Before a step: nothing dealt yet.
  void reset(int workers) {
    for (auto& taken : taken_) {
      if (static_cast<int>(taken.size()) != workers) taken = std::vector<Taken>(static_cast<size_t>(workers));
      for (Taken& t : taken) t.ends.store(0, std::memory_order_relaxed);
    }
  }

  // One worker's side of it. All workers deal the same products in the same order, and meet between them.
  class Hand {
   public:
    Hand(PanelDeal& deal, Worker& worker) : deal_(deal), worker_(worker) {}

    // The pairs that this worker takes first: [first, second).
    std::pair<int, int> share(int panels) const { return share_of(panels, worker_.index()); }

    // visit(panel, end, the panel this worker probably takes next, or `panels`).
    template <class Visit>
    void each_pair(int panels, Visit visit) {
      std::vector<Taken>& taken = deal_.taken_[product_++ % 2];
      // Mine of the product before: all have done with it, as they met since, and meet again before it is used again.
      deal_.taken_[product_ % 2][static_cast<size_t>(worker_.index())].ends.store(0, std::memory_order_relaxed);
      for (int i = 0; i < worker_.count(); i++) {
        const int owner = (worker_.index() + i) % worker_.count();
        const auto [begin, end] = share_of(panels, owner);
        const bool mine = i == 0;
        for (int first, some; take(taken[static_cast<size_t>(owner)], end - begin, mine, first, some);) {
          const int from = begin + first, to = from + some;
          visit(from * kPair, std::min(to * kPair, panels), mine && to < end ? to * kPair : panels);
        }
      }
    }

   private:
    std::pair<int, int> share_of(int panels, int w) const {
      const int all = pairs(panels);
      return {all * w / worker_.count(), all * (w + 1) / worker_.count()};
    }

    PanelDeal& deal_;
    Worker& worker_;
    int product_ = 0;  // dealt so far
  };

 private:
  // How many of a worker's pairs are taken: by itself from the front in the low half, by others from the end in the high
  // half.
  struct alignas(64) Taken {
    std::atomic<uint64_t> ends{0};
  };
  // Half of what is left of n pairs: [first, first + some), from the front or from the end.
  static bool take(Taken& taken, int n, bool front, int& first, int& some) {
    uint64_t ends = taken.ends.load(std::memory_order_relaxed);
    for (;;) {
      const int in_front = static_cast<int>(ends & 0xffffffff), behind = static_cast<int>(ends >> 32);
      const int left = n - in_front - behind;
      if (left <= 0) return false;
      some = (left + 1) / 2;
      first = front ? in_front : n - behind - some;
      const uint64_t more = static_cast<uint64_t>(some) << (front ? 0 : 32);
      if (taken.ends.compare_exchange_weak(ends, ends + more, std::memory_order_relaxed)) return true;
    }
  }

  std::vector<Taken> taken_[2]{};  // [workers], by turns for each product
};

}  // namespace unisono::model

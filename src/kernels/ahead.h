// Weights on their way: what will be used next is fetched a few lines at a time, beside the arithmetic on what is here.
// Hardware prefetchers stop at the end of a page, and a panel is soon used up.
#pragma once

#include "kernels/isa.h"

namespace unisono::kernels::KERNEL_ISA {

// What one tile fetches, some lines with each step. Small, and passed by value: it lives in registers.
struct Fetch {
  const std::byte* at = nullptr;
  int lines = 0;  // of a step
  UNISONO_INLINE void step() {
    for (int i = 0; i < lines; i++, at += 64) prefetch(at);
  }
};

// While panels [panel, panel + np) of w are used: the panels after them up to `end`, else what comes then; in equal parts with
// each of so many tiles of so many steps.
class Ahead {
 public:
  Ahead(const PanelMatrix& w, int panel, int np, int end, Upcoming then, int64_t tiles, int64_t steps) : steps_(steps) {
    const size_t next = static_cast<size_t>(panel + np);
    const bool more = panel + np < end;
    at_ = more ? w.data + w.panel_bytes * next : then.at;
    if (at_ == nullptr) return;
    left_ = static_cast<int64_t>((more ? w.panel_bytes * static_cast<size_t>(np) : then.bytes) / 64);
    lines_ = static_cast<int>((left_ + tiles * steps - 1) / (tiles * steps));
  }
  Fetch tile() {
    const Fetch some{at_, left_ > 0 ? lines_ : 0};
    at_ += steps_ * some.lines * 64;
    left_ -= steps_ * some.lines;
    return some;
  }

 private:
  int64_t steps_;
  const std::byte* at_;
  int64_t left_ = 0;  // lines
  int lines_ = 0;
};

}  // namespace unisono::kernels::KERNEL_ISA

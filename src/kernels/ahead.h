// Weights on their way: what will be used next is fetched a few lines at a time, beside the arithmetic on what is here.
// Hardware prefetchers stop at the end of a page, and a panel is soon used up.
#pragma once

#include "kernels/isa.h"
#include "kernels/pieces.h"

namespace unisono::kernels::KERNEL_ISA {

// What one tile fetches, some lines with each step. Small, and passed by value: it lives in registers.
struct Fetch {
  const std::byte* at = nullptr;
  int lines = 0;  // of a step
  const std::byte* later = nullptr;
  int later_lines = 0;
  UNISONO_INLINE void step() {
    for (int i = 0; i < lines; i++, at += 64) prefetch(at);
    for (int i = 0; i < later_lines; i++, later += 64) prefetch_far(later);
  }
};

// While panels [panel, panel + np) of w are used for `rows` rows: the panels after them up to `end`, else what comes then; in
// equal parts with each of so many tiles of so many steps. And beside them what is due of what comes later.
class Ahead {
 public:
  Ahead(const PanelMatrix& w, int panel, int np, int end, Upcoming then, int rows, int tiles, int steps)
      : steps_(steps), later_(then.later) {
    if (later_ != nullptr && !later_->chunks.empty()) {
      later_->owed += later_->pace * static_cast<double>(rows * np * pieces_of(w.k, kBlock));
      const int due = static_cast<int>(later_->owed);
      later_lines_ = greater(1, pieces_of(due, tiles * steps));
      later_tiles_ = due / (later_lines_ * steps);
      later_->owed -= later_tiles_ * later_lines_ * steps;
    }
    const size_t next = static_cast<size_t>(panel + np);
    const bool more = panel + np < end;
    at_ = more ? w.data + w.panel_bytes * next : then.at;
    if (at_ == nullptr) return;
    left_ = static_cast<int64_t>((more ? w.panel_bytes * static_cast<size_t>(np) : then.bytes) / 64);
    lines_ = static_cast<int>((left_ + tiles * steps - 1) / (tiles * steps));
  }
  Fetch tile() {
    Fetch some{at_, left_ > 0 ? lines_ : 0};
    at_ += steps_ * some.lines * 64;
    left_ -= steps_ * some.lines;
    if (later_tiles_-- > 0 && !later_->chunks.empty()) take_later(some);
    return some;
  }

 private:
  // Of the chunk at hand only: the next tile takes the next one.
  void take_later(Fetch& some) {
    Later& l = *later_;
    some.later = l.base + l.stride * static_cast<size_t>(l.chunks.front()) + 64 * l.line;
    some.later_lines = later_lines_;
    l.line += later_lines_ * steps_;
    if (l.line < l.chunk_lines) return;
    some.later_lines -= (l.line - l.chunk_lines) / steps_;
    l.line = 0;
    l.chunks = l.chunks.subspan(1);
  }

  int steps_;
  const std::byte* at_;
  int64_t left_ = 0;  // lines
  int lines_ = 0;
  Later* later_;
  int later_lines_ = 0, later_tiles_ = 0;  // so many lines with each step of so many tiles
};

// Panels [begin, end) of w as one stream, for rows that take no longer than memory does, and behind the last panel what comes
// then. So far ahead as memory's latency asks: a page is half a percent better at 50 GB/s, and up to four worse at 80.
class StreamAhead {
  static constexpr int kAhead = 5120;

 public:
  // As Fetch, but as many bytes with each step as it uses; a line on the border of two steps is asked for twice.
  struct PanelFetch {
    const std::byte* at = nullptr;
    int bytes = 0, lines = 0;  // of a step
    int turn = -1;             // after so many steps it goes on at `then`; less than 0: never
    const std::byte* then = nullptr;
    UNISONO_INLINE void step() {
      if (turn-- == 0) at = then;
      for (int i = 0; i < lines; i++) prefetch(at + 64 * i);
      at += bytes;
    }
  };

  // steps: of each panel.
  StreamAhead(const PanelMatrix& w, int begin, int end, Upcoming then, int steps)
      : next_{w.data + w.panel_bytes * static_cast<size_t>(begin) + kAhead}, bytes_(w.panel_bytes), left_(end - begin), then_(then.at) {
    next_.bytes = pieces_of(static_cast<int>(w.panel_bytes), steps);
    next_.lines = pieces_of(next_.bytes, 64);
    last_turn_ = greater(0, steps - pieces_of(kAhead, next_.bytes));
  }
  // While the next panel is used.
  PanelFetch panel() {
    PanelFetch some = next_;
    next_.at += bytes_;
    if (--left_ == 0 && then_ != nullptr) {
      some.turn = last_turn_;
      some.then = then_;
    }
    return some;
  }

 private:
  PanelFetch next_;
  size_t bytes_;
  int left_;  // panels
  int last_turn_ = 0;
  const std::byte* then_;
};

}  // namespace unisono::kernels::KERNEL_ISA

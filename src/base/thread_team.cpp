#include "base/thread_team.h"

#include <sched.h>

#include <algorithm>
#include <chrono>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

#include "base/check.h"

namespace unisono {

namespace {

constexpr uint32_t kLeave = uint32_t{1} << 31;
constexpr int kSpins = 2000;                                 // some 50 us of pauses
constexpr int kYields = 2000;                                // then up to a few ms of giving way to others
constexpr auto kLongYield = std::chrono::microseconds(200);  // somebody else has work for this CPU
constexpr int kCrowded = 5000;                               // barriers, some steps' worth, until yielding is tried again

void pause() {
#if defined(__x86_64__)
  _mm_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

template <class Done>
bool spin(Done done, int spins) {
  for (int i = 0; i < spins; i++) {
    if (done()) return true;
    pause();
  }
  return done();
}

}  // namespace

FlushDenormals::FlushDenormals() {
#if defined(__x86_64__)
  saved_ = _mm_getcsr();
  _mm_setcsr(saved_ | 0x8040);  // FTZ is bit 15, DAZ bit 6
#endif
}

FlushDenormals::~FlushDenormals() {
#if defined(__x86_64__)
  _mm_setcsr(saved_);
#endif
}

Worker::Range Worker::share(int64_t n, int64_t grain) const {
  const int64_t units = (n + grain - 1) / grain;
  const int64_t begin = units * index_ / count_, end = units * (index_ + 1) / count_;
  return {std::min(begin * grain, n), std::min(end * grain, n)};
}

void Worker::barrier() {
  if (count_ > 1) team_.meet();
}

ThreadTeam::ThreadTeam(const Placement& placement)
    : n_(placement.threads),
      nodes_(placement.nodes),
      cache_(placement.cache),
      spins_(n_ > static_cast<int>(allowed_cpus().size()) ? 0 : kSpins) {
  check(n_ >= 1, "a team has at least one thread");
  for (int i = 1; i < n_; i++) {
    const int cpu = placement.cpus.empty() ? -1 : placement.cpus[static_cast<size_t>(i)];
    threads_.emplace_back([this, i, cpu] {
      if (cpu >= 0) pin_to({&cpu, 1});
      serve(i);
    });
  }
}

ThreadTeam::~ThreadTeam() {
  round_.fetch_or(kLeave);
  round_.notify_all();
}

void ThreadTeam::start(Call call, void* fn) {
  FlushDenormals flushed;
  call_ = call;
  fn_ = fn;
  Worker self(*this, 0, n_);
  if (n_ > 1) {
    round_.fetch_add(1);
    if (sleeping_.load() > 0) round_.notify_all();
  }
  call(fn, self);
  self.barrier();  // nobody still uses the body after run() returns
}

void ThreadTeam::serve(int index) {
  FlushDenormals flushed;
  Worker self(*this, index, n_);
  uint32_t seen = 0;
  for (;;) {
    auto changed = [&] { return round_.load(std::memory_order_acquire) != seen; };
    bool called = spin(changed, spins_);
    for (int i = 0; i < kYields && !called && crowded_.load(std::memory_order_relaxed) == 0; i++) {
      sched_yield();
      called = changed();
    }
    if (!called) {
      sleeping_.fetch_add(1);
      round_.wait(seen);
      sleeping_.fetch_sub(1);
    }
    seen = round_.load(std::memory_order_acquire);
    if (seen & kLeave) return;
    call_(fn_, self);
    self.barrier();
  }
}

void ThreadTeam::meet() {
  const uint32_t meeting = meeting_.load(std::memory_order_relaxed);
  if (arrived_.fetch_add(1, std::memory_order_acq_rel) + 1 == n_) {
    arrived_.store(0, std::memory_order_relaxed);
    meeting_.fetch_add(1);
    if (parked_.load() > 0) meeting_.notify_all();
    if (const int left = crowded_.load(std::memory_order_relaxed); left > 0)
      crowded_.store(left - 1, std::memory_order_relaxed);
    return;
  }
  auto met = [&] { return meeting_.load(std::memory_order_acquire) != meeting; };
  if (spin(met, spins_)) return;
  while (crowded_.load(std::memory_order_relaxed) == 0) {
    const auto before = std::chrono::steady_clock::now();
    sched_yield();
    if (std::chrono::steady_clock::now() - before > kLongYield) crowded_.store(kCrowded, std::memory_order_relaxed);
    if (met()) return;
  }
  parked_.fetch_add(1);
  meeting_.wait(meeting);
  parked_.fetch_sub(1);
}

}  // namespace unisono

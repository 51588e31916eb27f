// A fixed team of threads that run one function together and meet at barriers. Made in main and passed down.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <span>
#include <thread>
#include <type_traits>
#include <vector>

#include "base/placement.h"

namespace unisono {

class ThreadTeam;

// One thread's place in a running body.
class Worker {
 public:
  int index() const { return index_; }  // 0 to count() - 1; 0 is the thread that called run()
  int count() const { return count_; }
  // Returns when every worker of the team has called it. Writes before it are seen by all after it.
  void barrier();

  // [begin, end) of n things for this worker, contiguous, sizes differing by at most one unit of `grain`.
  struct Range {
    int64_t begin = 0, end = 0;
  };
  Range share(int64_t n, int64_t grain = 1) const;

 private:
  friend class ThreadTeam;
  Worker(ThreadTeam& team, int index, int count) : team_(team), index_(index), count_(count) {}
  ThreadTeam& team_;
  int index_;
  int count_;
};

// Waiting is spinning for some 50 us, then yielding, then sleeping: a wake-up costs some 25 us, which is too much within a
// step, and a spin that never ends starves an oversubscribed machine. Who yields to others may come back only many
// milliseconds later, but who sleeps runs soon when woken: so once a yield takes long, barriers sleep for a while instead.
// While a body runs, its threads flush denormals to zero (FTZ and DAZ): every kernel's bits rely on it.
class ThreadTeam {
 public:
  // n >= 1 threads in all, the caller of run() included; where the system puts them.
  explicit ThreadTeam(int n) : ThreadTeam(Placement{.threads = n}) {}
  // Worker i asks for its CPU. Worker 0 doesn't: threads that the caller makes would have that CPU too, and the others leave it free.
  explicit ThreadTeam(const Placement& placement);
  ~ThreadTeam();
  ThreadTeam(const ThreadTeam&) = delete;
  ThreadTeam& operator=(const ThreadTeam&) = delete;

  int size() const { return n_; }
  // Memory nodes that what all workers read is dealt over: for Buffer::interleave().
  std::span<const int> nodes() const { return nodes_; }
  // The last-level cache that workers share: how much may be fetched ahead.
  const SharedCache& cache() const { return cache_; }

  // Calls body(Worker&) on every thread and returns when all have returned. One run at a time; body must not throw.
  template <class Body>
  void run(Body&& body) {
    using Fn = std::remove_reference_t<Body>;
    start([](void* fn, Worker& worker) { (*static_cast<Fn*>(fn))(worker); }, &body);
  }

 private:
  friend class Worker;
  using Call = void (*)(void*, Worker&);
  void start(Call call, void* fn);
  void serve(int index);
  void meet();

  const int n_;
  const std::vector<int> nodes_;
  const SharedCache cache_;
  const int spins_;  // before yielding; none where threads outnumber CPUs: who spins keeps away whom it waits for
  Call call_ = nullptr;
  void* fn_ = nullptr;
  alignas(64) std::atomic<uint32_t> round_{0};    // counts runs; bit 31 asks the threads to leave
  alignas(64) std::atomic<int> sleeping_{0};      // threads that may need a wake-up
  alignas(64) std::atomic<int> arrived_{0};       // at the barrier
  alignas(64) std::atomic<uint32_t> meeting_{0};  // counts barriers
  alignas(64) std::atomic<int> parked_{0};        // threads asleep at a barrier
  alignas(64) std::atomic<int> crowded_{0};       // barriers still to be slept at rather than yielded
  std::vector<std::jthread> threads_;
};

// Flush-to-zero and denormals-are-zero for the calling thread, while it lives.
class FlushDenormals {
 public:
  FlushDenormals();
  ~FlushDenormals();
  FlushDenormals(const FlushDenormals&) = delete;
  FlushDenormals& operator=(const FlushDenormals&) = delete;

 private:
  unsigned saved_ = 0;
};

}  // namespace unisono

#include "base/thread_team.h"

#include <gtest/gtest.h>

#include <limits>
#include <numeric>
#include <thread>

namespace unisono {
namespace {

TEST(ThreadTeam, BarriersSeparatePhases) {
  for (int n : {1, 2, 3, 8}) {  // 8: more threads than a small machine has cores
    ThreadTeam team(n);
    std::vector<int> slot(static_cast<size_t>(n)), sum(static_cast<size_t>(n));
    for (int round = 0; round < 200; round++) {
      team.run([&](Worker& w) {
        slot[static_cast<size_t>(w.index())] = round + w.index();
        w.barrier();
        sum[static_cast<size_t>(w.index())] = std::accumulate(slot.begin(), slot.end(), 0);
        w.barrier();
        slot[static_cast<size_t>(w.index())] = 0;
      });
      for (int s : sum) ASSERT_EQ(s, n * round + n * (n - 1) / 2);
    }
  }
}

TEST(ThreadTeam, WakesSleepers) {
  ThreadTeam team(2);
  int ran = 0;
  for (int i = 0; i < 3; i++) {
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
    team.run([&](Worker& w) {
      if (w.index() == 0) ran++;
    });
  }
  EXPECT_EQ(ran, 3);
}

TEST(ThreadTeam, SharesCoverEverythingOnce) {
  for (int n : {1, 2, 5}) {
    ThreadTeam team(n);
    for (int64_t things : {0, 1, 7, 100}) {
      std::vector<std::atomic<int>> seen(static_cast<size_t>(things));
      team.run([&](Worker& w) {
        const auto range = w.share(things, 3);
        for (int64_t i = range.begin; i < range.end; i++) seen[static_cast<size_t>(i)]++;
      });
      for (auto& s : seen) EXPECT_EQ(s, 1);
    }
  }
}

TEST(ThreadTeam, FlushesDenormalsOnEveryThreadAndOnlyInside) {
  ThreadTeam team(2);
  volatile float tiny = std::numeric_limits<float>::min();
  std::vector<float> halves(2);
  team.run([&](Worker& w) { halves[static_cast<size_t>(w.index())] = tiny * 0.5f; });
  EXPECT_EQ(halves, std::vector<float>({0, 0}));
  EXPECT_GT(tiny * 0.5f, 0);
}

}  // namespace
}  // namespace unisono

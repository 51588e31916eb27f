// Which CPUs and nodes are chosen, on invented machines; and what this one does with the choice.
#include "base/placement.h"

#include <gmock/gmock.h>
#include <linux/mempolicy.h>
#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <numeric>
#include <thread>

#include "base/buffer.h"
#include "base/thread_team.h"

namespace unisono {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

TEST(IdList, RangesAndSingles) {
  EXPECT_THAT(parse_id_list("0-3,8,10-11"), ElementsAre(0, 1, 2, 3, 8, 10, 11));
  EXPECT_THAT(parse_id_list("5"), ElementsAre(5));
  EXPECT_THAT(parse_id_list("4,2,2-4"), ElementsAre(2, 3, 4));
  for (const char* wrong : {"", "a", "1-", "-3", "3-1", "1,,2", "1;2", "0-99999999999", "0-70000"})
    EXPECT_THAT(parse_id_list(wrong), IsEmpty()) << wrong;
}

// A tree as Linux has it under /sys/devices.
class Machine {
 public:
  Machine() : root_(std::filesystem::temp_directory_path() / ("unisono_placement_" + std::to_string(::getpid()))) {
    std::filesystem::remove_all(root_);
  }
  ~Machine() { std::filesystem::remove_all(root_); }
  void put(const std::string& path, const std::string& text) const {
    std::filesystem::create_directories((root_ / path).parent_path());
    std::ofstream(root_ / path) << text << "\n";
  }
  // Level 3, of all CPUs in the list; below it caches of their own.
  void last_cache(int cpu, const std::string& list, const std::string& size) const {
    const std::string folder = "system/cpu/cpu" + std::to_string(cpu) + "/cache/index";
    for (const auto& [index, level, shared, bytes] :
         {std::tuple{"0", "1", std::to_string(cpu), "48K"}, {"1", "1", std::to_string(cpu), "32K"}, {"2", "3", list, size.c_str()},
          {"3", "2", std::to_string(cpu), "1024K"}}) {
      put(folder + index + "/level", level);
      put(folder + index + "/shared_cpu_list", shared);
      put(folder + index + "/size", bytes);
    }
  }
  void siblings(int cpu, const std::string& list) const {
    put("system/cpu/cpu" + std::to_string(cpu) + "/topology/thread_siblings_list", list);
  }
  Topology read() const { return read_topology(root_.string()); }

 private:
  std::filesystem::path root_;
};

// Two sockets of 4 cores of 2 threads: CPUs 0-3 and 8-11 on node 0, 4-7 and 12-15 on node 1, siblings 8 apart.
struct TwoSockets : Machine {
  TwoSockets() {
    put("system/cpu/online", "0-15");
    for (int cpu = 0; cpu < 16; cpu++) siblings(cpu, std::to_string(cpu % 8) + "," + std::to_string(cpu % 8 + 8));
    put("system/node/online", "0-1");
    put("system/node/has_memory", "0-1");
    put("system/node/node0/cpulist", "0-3,8-11");
    put("system/node/node1/cpulist", "4-7,12-15");
  }
};

std::vector<int> all(int n) {
  std::vector<int> ids(static_cast<size_t>(n));
  std::iota(ids.begin(), ids.end(), 0);
  return ids;
}
Placement choose(const Machine& machine, const std::vector<int>& allowed, int threads, Numa numa = Numa::distribute,
                 int here = 0) {
  return choose_placement(machine.read(), allowed, threads, numa, here);
}

TEST(Placement, TwoSocketsCoresBeforeSiblingsNodesInTurn) {
  const TwoSockets machine;
  EXPECT_THAT(choose(machine, all(16), 4).cpus, ElementsAre(0, 4, 1, 5));
  const Placement full = choose(machine, all(16), 0);
  EXPECT_EQ(full.threads, 16);
  EXPECT_THAT(full.cpus, ElementsAre(0, 4, 1, 5, 2, 6, 3, 7, 8, 12, 9, 13, 10, 14, 11, 15));
  EXPECT_THAT(full.nodes, ElementsAre(0, 1));
}

TEST(Placement, OneThreadHasOneNode) {
  const TwoSockets machine;
  EXPECT_THAT(choose(machine, all(16), 1).cpus, ElementsAre(0));
  EXPECT_THAT(choose(machine, all(16), 1).nodes, ElementsAre(0));
}

TEST(Placement, IsolateStaysWhereItStarted) {
  const TwoSockets machine;
  const Placement p = choose(machine, all(16), 0, Numa::isolate, 13);
  EXPECT_EQ(p.threads, 8);
  EXPECT_THAT(p.cpus, ElementsAre(4, 5, 6, 7, 12, 13, 14, 15));
  EXPECT_THAT(p.nodes, ElementsAre(1));
}

TEST(Placement, NumactlPinsAndLeavesMemory) {
  const TwoSockets machine;
  const Placement p = choose(machine, all(16), 2, Numa::numactl);
  EXPECT_THAT(p.cpus, ElementsAre(0, 4));
  EXPECT_THAT(p.nodes, IsEmpty());
}

TEST(Placement, OffTouchesNothing) {
  const TwoSockets machine;
  const Placement p = choose(machine, all(16), 0, Numa::off);
  EXPECT_EQ(p.threads, 16);
  EXPECT_THAT(p.cpus, IsEmpty());
  EXPECT_THAT(p.nodes, IsEmpty());
}

// Of core 1 only the second thread is allowed, of core 2 both, of node 1 one CPU.
TEST(Placement, HolesInTheCpuset) {
  const TwoSockets machine;
  const Placement p = choose(machine, {2, 9, 10, 15}, 0);
  EXPECT_EQ(p.threads, 4);
  EXPECT_THAT(p.cpus, ElementsAre(2, 15, 9, 10));  // each a core, nodes in turn; 10 is 2's sibling
  EXPECT_THAT(p.nodes, ElementsAre(0, 1));
  EXPECT_THAT(choose(machine, {2, 9, 10}, 0).nodes, ElementsAre(0));
}

TEST(Placement, MoreThreadsThanCpusShareThemEvenly) {
  const TwoSockets machine;
  const Placement p = choose(machine, {0, 4}, 5);
  EXPECT_EQ(p.threads, 5);
  EXPECT_THAT(p.cpus, ElementsAre(0, 4, 0, 4, 0));
}

// Two fast cores of two threads, four slow ones of one.
TEST(Placement, HybridTakesFastCoresFirstAndSiblingsLast) {
  const Machine machine;
  machine.put("system/cpu/online", "0-7");
  for (int cpu = 0; cpu < 4; cpu++) machine.siblings(cpu, cpu < 2 ? "0-1" : "2-3");
  for (int cpu = 4; cpu < 8; cpu++) machine.siblings(cpu, std::to_string(cpu));
  machine.put("cpu_core/cpus", "0-3");
  machine.put("cpu_atom/cpus", "4-7");
  machine.put("system/node/online", "0");
  machine.put("system/node/has_memory", "0");
  machine.put("system/node/node0/cpulist", "0-7");
  const Placement p = choose(machine, all(8), 0);
  EXPECT_THAT(p.cpus, ElementsAre(0, 2, 4, 5, 6, 7, 1, 3));
  EXPECT_THAT(p.nodes, IsEmpty());  // one node: there is nothing to choose
}

TEST(Placement, OfflineCpusAreNotTaken) {
  const TwoSockets machine;
  machine.put("system/cpu/online", "0-2,4-15");  // core 3 has only its second thread
  machine.siblings(11, "11");
  machine.put("system/node/node0/cpulist", "0-2,8-11");
  const Placement p = choose(machine, all(16), 8);
  EXPECT_THAT(p.cpus, ElementsAre(0, 4, 1, 5, 2, 6, 11, 7));
}

// A node of CPUs without memory, and one of memory without CPUs.
TEST(Placement, OnlyNodesOfWorkersThatHaveMemory) {
  const TwoSockets machine;
  machine.put("system/node/online", "0-3");
  machine.put("system/node/has_memory", "0,2-3");
  machine.put("system/node/node2/cpulist", "");
  machine.put("system/node/node3/cpulist", "");
  const Placement p = choose(machine, all(16), 0);
  EXPECT_THAT(p.cpus, testing::SizeIs(16));
  EXPECT_THAT(p.nodes, ElementsAre(0));
  EXPECT_THAT(choose(machine, {4, 5}, 0).nodes, IsEmpty());
}

TEST(Placement, WithoutATreeEachAllowedCpuIsACore) {
  const Machine machine;
  const Placement p = choose(machine, {1, 3, 6}, 0);
  EXPECT_EQ(p.threads, 3);
  EXPECT_THAT(p.cpus, ElementsAre(1, 3, 6));
  EXPECT_THAT(p.nodes, IsEmpty());
}

TEST(Placement, WithoutNodesEachCpuIsACoreOfNodeZero) {
  const Machine machine;
  machine.put("system/cpu/online", "0-3");
  const Placement p = choose(machine, all(4), 0);
  EXPECT_THAT(p.cpus, ElementsAre(0, 1, 2, 3));
  EXPECT_THAT(p.nodes, IsEmpty());
}

TEST(Placement, KnowsTheLastCacheAndWhoSharesIt) {
  const TwoSockets machine;
  EXPECT_EQ(choose(machine, all(16), 0).cache.bytes, 0u);
  for (int cpu = 0; cpu < 16; cpu++) machine.last_cache(cpu, cpu % 8 < 4 ? "0-3,8-11" : "4-7,12-15", "32768K");
  const Placement full = choose(machine, all(16), 0);
  EXPECT_EQ(full.cache.bytes, size_t{32} << 20);
  EXPECT_EQ(full.cache.threads, 8);
  EXPECT_EQ(choose(machine, all(16), 3).cache.threads, 2);  // two nodes in turn
  EXPECT_EQ(choose(machine, {0, 1}, 5).cache.threads, 5);
  EXPECT_EQ(choose(machine, all(16), 0, Numa::off).cache.bytes, size_t{32} << 20);
  machine.last_cache(5, "4-7,12-15", "16384K");
  EXPECT_EQ(choose(machine, all(16), 0).cache.bytes, size_t{16} << 20);  // what all have
  machine.put("system/cpu/cpu5/cache/index2/size", "much");
  EXPECT_EQ(choose(machine, all(16), 0).cache.threads, 8);
}

TEST(Placement, GoesOnWithoutLeave) {
  const TwoSockets machine;
  const Placement chosen = choose(machine, all(16), 4);
  const Placement granted =
      with_leave(chosen, false, [](std::span<const int> nodes) { return nodes.size() == 2 ? 0 : EINVAL; });
  EXPECT_EQ(granted.nodes, chosen.nodes);
  EXPECT_EQ(granted.note, "");
  const Placement refused = with_leave(chosen, false, [](std::span<const int>) { return EPERM; });
  EXPECT_EQ(refused.cpus, chosen.cpus);
  EXPECT_THAT(refused.nodes, IsEmpty());
  EXPECT_THAT(refused.note, testing::HasSubstr("Operation not permitted"));
  const Placement kept = with_leave(chosen, true, [](std::span<const int>) -> int { throw "asked"; });
  EXPECT_EQ(kept.cpus, chosen.cpus);
  EXPECT_THAT(kept.nodes, IsEmpty());
  EXPECT_EQ(kept.note, "");
}

// ---- This machine.

std::vector<int> affinity_of_a_thread(std::span<const int> cpus) {
  std::vector<int> seen;
  std::thread([&] {
    pin_to(cpus);
    seen = allowed_cpus();
  }).join();
  return seen;
}

TEST(Here, PinsAndRespectsWhatIsAllowed) {
  const std::vector<int> allowed = allowed_cpus();
  const std::vector<int> last{allowed.back()};
  EXPECT_EQ(affinity_of_a_thread(last), last);
  std::thread([&] {  // as in a cpuset of one CPU
    pin_to(last);
    const Placement p = place(0, Numa::distribute);
    EXPECT_EQ(p.threads, 1);
    EXPECT_EQ(p.cpus, last);
  })
      .join();
  const Placement p = place(0, Numa::distribute);
  EXPECT_EQ(p.threads, static_cast<int>(allowed.size()));
  auto cpus = p.cpus;
  std::ranges::sort(cpus);
  EXPECT_EQ(cpus, allowed);
}

TEST(Here, WorkersRunOnTheirCpusAndTheCallerIsFree) {
  const std::vector<int> allowed = allowed_cpus();
  Placement placement{.threads = 3};
  for (int i = 0; i < 3; i++) placement.cpus.push_back(allowed[static_cast<size_t>(i) % allowed.size()]);
  ThreadTeam team(placement);
  std::vector<std::vector<int>> seen(3);
  team.run([&](Worker& w) { seen[static_cast<size_t>(w.index())] = allowed_cpus(); });
  EXPECT_EQ(seen[0], allowed);
  for (size_t i : {size_t{1}, size_t{2}}) EXPECT_THAT(seen[i], ElementsAre(placement.cpus[i]));
}

TEST(Here, BuffersAreInterleaved) {
  const int error = [] {
    Buffer probe(size_t{4} << 20);
    return interleave_pages(probe.data(), probe.size(), std::vector<int>{0});
  }();
  if (error == EPERM || error == ENOSYS) GTEST_SKIP() << "memory policies are not permitted here";
  ASSERT_EQ(error, 0);
  const auto policy_of = [](const std::byte* at) {
    int mode = -1;
    return ::syscall(SYS_get_mempolicy, &mode, nullptr, 0, at, MPOL_F_ADDR) == 0 ? mode : -1;
  };
  Buffer memory(size_t{5} << 20), plain(size_t{5} << 20);
  memory.interleave(std::vector<int>{0});
  plain.interleave({});
  EXPECT_EQ(policy_of(memory.data()), MPOL_INTERLEAVE);
  EXPECT_EQ(policy_of(memory.data() + memory.size() - 1), MPOL_INTERLEAVE);
  EXPECT_EQ(policy_of(plain.data()), MPOL_DEFAULT);
  std::ranges::fill(memory.as<char>(), 'x');  // and can be used
  EXPECT_EQ(std::ranges::count(memory.as<char>(), 'x'), int64_t{5} << 20);
  Buffer small(100);
  small.interleave(std::vector<int>{0});  // of the heap: nothing is asked
}

TEST(Here, NodesThatAreNotThereAreRefusedAndDoNoHarm) {
  Buffer memory(size_t{4} << 20);
  EXPECT_NE(interleave_pages(memory.data(), memory.size(), std::vector<int>{1023}), 0);
  memory.interleave(std::vector<int>{1023});
  memory.as<char>().front() = 'x';
}

}  // namespace
}  // namespace unisono

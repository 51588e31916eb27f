#include "base/placement.h"

#include <linux/mempolicy.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <map>
#include <tuple>

namespace unisono {

namespace {

constexpr size_t kMostCpus = 1 << 14, kMostNodes = 1024;

// A CPU set of any size: the system refuses sets that are smaller than its own.
struct CpuSet {
  CpuSet() : bits(kMostCpus / (8 * sizeof(unsigned long))) {}
  cpu_set_t* get() { return reinterpret_cast<cpu_set_t*>(bits.data()); }
  size_t bytes() const { return bits.size() * sizeof(unsigned long); }
  std::vector<unsigned long> bits;
};

// The allowed CPUs of the node that `here` belongs to; all, where that is unknown.
std::vector<int> on_node_of(const Topology& machine, std::span<const int> allowed, int here) {
  const auto found = std::ranges::find(machine.cpus, here, &Cpu::id);
  std::vector<int> ids;
  if (found != machine.cpus.end())
    for (const Cpu& cpu : machine.cpus)
      if (cpu.node == found->node && std::ranges::find(allowed, cpu.id) != allowed.end()) ids.push_back(cpu.id);
  return ids.empty() ? std::vector<int>(allowed.begin(), allowed.end()) : ids;
}

// Allowed CPUs in the order in which threads take them.
std::vector<Cpu> in_order(const Topology& machine, std::span<const int> allowed) {
  using Rank = std::tuple<int, bool, int, int>;  // threads before it on its core, slow, cores before it on its node, node
  std::vector<std::pair<Rank, Cpu>> ranked;
  std::map<int, int> on_core;
  std::map<std::tuple<int, int, bool>, int> on_node;  // by node, rank on the core, kind
  std::vector<Cpu> cpus = machine.cpus;
  if (cpus.empty())
    for (const int id : allowed) cpus.push_back({.id = id, .core = id});
  for (const Cpu& cpu : cpus) {
    if (std::ranges::find(allowed, cpu.id) == allowed.end()) continue;
    const int thread = on_core[cpu.core]++;
    ranked.push_back({{thread, cpu.efficient, on_node[{cpu.node, thread, cpu.efficient}]++, cpu.node}, cpu});
  }
  std::ranges::stable_sort(ranked, {}, &std::pair<Rank, Cpu>::first);
  std::vector<Cpu> order;
  for (const auto& [rank, cpu] : ranked) order.push_back(cpu);
  return order;
}

// Of `threads` threads, dealt to these CPUs in turn.
SharedCache shared_cache(const Topology& machine, std::span<const Cpu> order, int threads) {
  SharedCache cache{.bytes = machine.cache_bytes};
  std::map<int, int> on_cache;
  for (int i = 0; i < threads; i++) {
    const Cpu& cpu = order[static_cast<size_t>(i) % order.size()];
    if (cpu.cache < 0) cache.bytes = 0;
    cache.threads = std::max(cache.threads, ++on_cache[cpu.cache]);
  }
  return cache;
}

bool policy_is_set() {
  int mode = MPOL_DEFAULT;
  return ::syscall(SYS_get_mempolicy, &mode, nullptr, 0, nullptr, 0) == 0 && mode != MPOL_DEFAULT;
}

// What interleave_pages() says here.
int try_interleaving(std::span<const int> nodes) {
  const auto page = static_cast<size_t>(::sysconf(_SC_PAGESIZE));
  void* map = ::mmap(nullptr, page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (map == MAP_FAILED) return errno;
  const int error = interleave_pages(map, page, nodes);
  ::munmap(map, page);
  return error;
}

}  // namespace

std::vector<int> allowed_cpus() {
  CpuSet set;
  std::vector<int> ids;
  if (::sched_getaffinity(0, set.bytes(), set.get()) == 0)
    for (size_t cpu = 0; cpu < kMostCpus; cpu++)
      if (CPU_ISSET_S(cpu, set.bytes(), set.get())) ids.push_back(static_cast<int>(cpu));
  if (ids.empty()) ids.push_back(0);
  return ids;
}

void pin_to(std::span<const int> cpus) {
  CpuSet set;
  for (const int cpu : cpus) CPU_SET_S(static_cast<size_t>(cpu), set.bytes(), set.get());
  ::sched_setaffinity(0, set.bytes(), set.get());
}

Placement choose_placement(const Topology& machine, std::span<const int> allowed, int threads, Numa numa, int here) {
  const std::vector<int> ids =
      numa == Numa::isolate ? on_node_of(machine, allowed, here) : std::vector<int>(allowed.begin(), allowed.end());
  Placement placement{.threads = threads > 0 ? threads : static_cast<int>(ids.size())};
  const std::vector<Cpu> order = in_order(machine, ids);
  if (order.empty()) return placement;
  placement.cache = shared_cache(machine, order, placement.threads);
  if (numa == Numa::off) return placement;
  for (int i = 0; i < placement.threads; i++) {
    const Cpu& cpu = order[static_cast<size_t>(i) % order.size()];
    placement.cpus.push_back(cpu.id);
    if (machine.nodes.size() > 1 && numa != Numa::numactl &&
        std::ranges::find(machine.nodes, cpu.node) != machine.nodes.end())
      placement.nodes.push_back(cpu.node);
  }
  std::ranges::sort(placement.nodes);
  placement.nodes.erase(std::unique(placement.nodes.begin(), placement.nodes.end()), placement.nodes.end());
  return placement;
}

Placement with_leave(Placement placement, bool policy_set, int (*ask)(std::span<const int> nodes)) {
  if (placement.nodes.empty()) return placement;
  const int error = policy_set ? 0 : ask(placement.nodes);
  if (policy_set || error != 0) placement.nodes.clear();
  if (error != 0)
    placement.note = std::string("The system doesn't let this program deal its memory over nodes (") +
                     std::strerror(error) + "): going on without.";
  return placement;
}

Placement place(int threads, Numa numa) {
  const Topology machine = read_topology();
  const int here = ::sched_getcpu();
  if (numa == Numa::isolate) pin_to(on_node_of(machine, allowed_cpus(), here));
  return with_leave(choose_placement(machine, allowed_cpus(), threads, numa, here), policy_is_set(), try_interleaving);
}

int interleave_pages(void* begin, size_t bytes, std::span<const int> nodes) {
  constexpr size_t kBits = 8 * sizeof(unsigned long);
  unsigned long mask[kMostNodes / kBits] = {};
  for (const int node : nodes)
    if (node >= 0 && static_cast<size_t>(node) < kMostNodes)
      mask[static_cast<size_t>(node) / kBits] |= 1ul << (static_cast<size_t>(node) % kBits);
  return ::syscall(SYS_mbind, begin, bytes, MPOL_INTERLEAVE, mask, kMostNodes + 1, 0) == 0 ? 0 : errno;
}

}  // namespace unisono

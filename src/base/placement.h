// Which CPUs a team's threads run on, and on which memory nodes lies what all of them read. Changes speed, never an answer.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/topology.h"

namespace unisono {

enum class Numa : uint8_t {
  distribute,  // threads and memory over all nodes of the allowed CPUs
  isolate,     // on the node where the program started
  numactl,     // threads over the allowed CPUs, memory as it was told from outside
  off,         // threads where the system puts them, memory too
};

// A last-level cache, as seen by the threads that work on its CPUs.
struct SharedCache {
  size_t bytes = 0;  // 0: unknown
  int threads = 1;   // so many share it, at most
};

struct Placement {
  int threads = 1;
  std::vector<int> cpus{};   // [threads] each one's CPU; empty: not pinned
  std::vector<int> nodes{};  // that weights, keys and values are dealt over, page by page; empty: not told
  SharedCache cache{};
  std::string note{};        // one sentence, where something was refused
};

// CPUs that the calling thread may use, by id; never none.
std::vector<int> allowed_cpus();
// The calling thread, and those it makes later, use these CPUs only. Advice: elsewhere they are only slower.
void pin_to(std::span<const int> cpus);

// The choice, for so many threads (0: one for each allowed CPU): a core each before any has two, fast cores before slow
// ones, and nodes in turn. More threads than CPUs: they share these evenly. here: the CPU where the program started.
Placement choose_placement(const Topology& machine, std::span<const int> allowed, int threads, Numa numa, int here);

// Without the nodes where a memory policy was set from outside (numactl), or where `ask`, which returns errno's number, is
// refused.
Placement with_leave(Placement placement, bool policy_set, int (*ask)(std::span<const int> nodes));

// Both for this machine. isolate: the calling thread, and those it makes, may then only use that node's CPUs.
Placement place(int threads, Numa numa);

// Asks for pages from these nodes in turn, for whole pages that nothing was written to yet. Returns errno's number; 0:
// done.
int interleave_pages(void* begin, size_t bytes, std::span<const int> nodes);

}  // namespace unisono

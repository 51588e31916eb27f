// The CPUs and memory of a machine, as Linux lists them under /sys/devices.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace unisono {

struct Cpu {
  int id = 0;
  int core = 0;            // the lowest id of the CPUs (threads) of its physical core
  int node = 0;            // of memory that is nearest
  int cache = -1;          // the lowest id of the CPUs that share its last-level cache; -1: unknown
  bool efficient = false;  // a hybrid CPU's slower kind
};

struct Topology {
  std::vector<Cpu> cpus{};   // online, by id; empty: it can't be read
  std::vector<int> nodes{};  // that have memory
  size_t cache_bytes = 0;    // of the smallest of the last-level caches; 0: unknown
};

// Tests give a tree of their own as `devices`. What is missing is one node, a core for each CPU.
Topology read_topology(const std::string& devices = "/sys/devices");

// "0-3,8,10-11" as ascending numbers; empty: none, or not such a list.
std::vector<int> parse_id_list(std::string_view text);

}  // namespace unisono

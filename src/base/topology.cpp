#include "base/topology.h"

#include <algorithm>
#include <charconv>
#include <fstream>

namespace unisono {

namespace {

constexpr int kMostIds = 1 << 16;

std::vector<int> read_ids(const std::string& path) {
  std::ifstream file(path);
  std::string line;
  std::getline(file, line);
  return parse_id_list(line);
}

}  // namespace

std::vector<int> parse_id_list(std::string_view text) {
  std::vector<int> ids;
  const char *at = text.data(), *const end = at + text.size();
  const auto number = [&](int& value) {
    const auto [next, error] = std::from_chars(at, end, value);
    at = next;
    return error == std::errc() && value >= 0 && value < kMostIds;
  };
  while (at < end) {
    int first = 0, last = 0;
    if (!number(first)) return {};
    last = first;
    if (at < end && *at == '-') {
      at++;
      if (!number(last) || last < first) return {};
    }
    for (int id = first; id <= last; id++) ids.push_back(id);
    if (at < end && *at++ != ',') return {};
  }
  std::ranges::sort(ids);
  ids.erase(std::unique(ids.begin(), ids.end()), ids.end());
  return ids;
}

Topology read_topology(const std::string& devices) {
  Topology machine;
  const std::string cpus = devices + "/system/cpu/", nodes = devices + "/system/node/";
  for (const int id : read_ids(cpus + "online")) {
    const auto siblings = read_ids(cpus + "cpu" + std::to_string(id) + "/topology/thread_siblings_list");
    machine.cpus.push_back({.id = id, .core = siblings.empty() ? id : siblings.front()});
  }
  const auto each = [&](const std::vector<int>& ids, auto change) {
    for (Cpu& cpu : machine.cpus)
      if (std::ranges::binary_search(ids, cpu.id)) change(cpu);
  };
  each(read_ids(devices + "/cpu_atom/cpus"), [](Cpu& cpu) { cpu.efficient = true; });
  for (const int node : read_ids(nodes + "online"))
    each(read_ids(nodes + "node" + std::to_string(node) + "/cpulist"), [&](Cpu& cpu) { cpu.node = node; });
  machine.nodes = read_ids(nodes + "has_memory");
  if (machine.nodes.empty()) machine.nodes = {0};
  return machine;
}

}  // namespace unisono

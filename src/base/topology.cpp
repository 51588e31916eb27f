#include "base/topology.h"

#include <algorithm>
#include <charconv>
#include <fstream>

namespace unisono {

namespace {

constexpr int kMostIds = 1 << 16;

std::string read_line(const std::string& path) {
  std::ifstream file(path);
  std::string line;
  std::getline(file, line);
  return line;
}

std::vector<int> read_ids(const std::string& path) { return parse_id_list(read_line(path)); }

// "32768K"; 0: not such a size.
size_t parse_kilobytes(std::string_view text) {
  size_t kilobytes = 0;
  const auto error = std::from_chars(text.data(), text.data() + text.size(), kilobytes).ec;
  return error == std::errc() && kilobytes < size_t{1} << 40 && text.ends_with('K') ? kilobytes << 10 : 0;
}

struct LastCache {
  int first_cpu = -1;  // of those that share it
  size_t bytes = 0;
};

// Of the caches in a CPU's folder, the one of the highest level.
LastCache last_cache(const std::string& folder) {
  LastCache last;
  std::string highest;
  for (int i = 0;; i++) {
    const std::string index = folder + "/index" + std::to_string(i) + "/", level = read_line(index + "level");
    if (level.empty()) return last;
    const auto shared = read_ids(index + "shared_cpu_list");
    const size_t bytes = parse_kilobytes(read_line(index + "size"));
    if (level <= highest || shared.empty() || bytes == 0) continue;
    highest = level;
    last = {shared.front(), bytes};
  }
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
    const LastCache cache = last_cache(cpus + "cpu" + std::to_string(id) + "/cache");
    machine.cpus.back().cache = cache.first_cpu;
    if (cache.bytes > 0 && (machine.cache_bytes == 0 || cache.bytes < machine.cache_bytes)) machine.cache_bytes = cache.bytes;
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

#include "pilot/processes/read_topology.hpp"

#include "pilot/base/files.hpp"

#include <algorithm>
#include <cstdlib>
#include <map>
#include <string_view>

namespace hpcbatch::pilot {
namespace {

/// "0-3,8": the kernel's way to write a set.
std::vector<unsigned> read_list(const std::string& text) {
  std::vector<unsigned> numbers;
  constexpr unsigned kMost = 1U << 16;
  const char* at = text.c_str();
  for (char* end = nullptr; *at != '\0';) {
    const unsigned long first = std::strtoul(at, &end, 10);
    if (end == at) break;
    unsigned long last = first;
    if (*end == '-') last = std::strtoul(end + 1, &end, 10);
    for (unsigned long n = first; n <= last && n < kMost; ++n)
      numbers.push_back(static_cast<unsigned>(n));
    at = *end == ',' ? end + 1 : end;
    if (*at == '\n') break;
  }
  return numbers;
}

}  // namespace

Topology read_topology(const std::vector<unsigned>& cpus, const std::string& root) {
  std::map<unsigned, unsigned> nodes;
  const std::string folder = root + "/devices/system/node/";
  for (const unsigned node : read_list(read_small(folder + "online"))) {
    for (const unsigned cpu :
         read_list(read_small(folder + "node" + std::to_string(node) + "/cpulist")))
      nodes[cpu] = node;
  }
  Topology all;
  for (const unsigned cpu : cpus) {
    const std::vector<unsigned> threads = read_list(read_small(
        root + "/devices/system/cpu/cpu" + std::to_string(cpu) + "/topology/thread_siblings_list"));
    const auto node = nodes.find(cpu);
    // The lowest of its threads stands for the core.
    all.push_back({cpu, node == nodes.end() ? 0 : node->second,
                   threads.empty() ? cpu : *std::min_element(threads.begin(), threads.end())});
  }
  return all;
}

}  // namespace hpcbatch::pilot

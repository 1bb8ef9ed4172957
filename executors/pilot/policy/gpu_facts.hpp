// What the helper beside the pilot says of this node's GPUs, line by line.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace hpcbatch::pilot {

/// Of one at the pilot's start.
struct GpuFacts {
  std::string uuid;  // empty: nobody knows
  std::string name;
  std::uint64_t memory{0};  // bytes; 0: not known
  std::string capability;
  std::string driver;
  std::string trouble;                  // why it is not to be used
  std::optional<unsigned> numa_node{};  // whose cpus are near it
};

/// What one does just now, or what has become of it.
struct GpuSeen {
  struct Process {
    pid_t pid{};
    std::uint64_t memory{};
  };
  unsigned device{};  // the pilot's number
  unsigned busy{};    // percent
  std::uint64_t memory{};
  std::optional<std::uint64_t> energy_mj;  // since ever
  std::vector<Process> processes;
  std::string trouble;
  bool was_asked{false};  // seen after the helper was asked to look at once
};

/// Of `hpcbatch-gpu check`: its devices in the order in which the batch system gave them.  What is
/// no line of it is passed over.
std::vector<GpuFacts> read_gpu_facts(std::string_view text);

/// A line of `hpcbatch-gpu watch`; nothing where it tells of none of ours.
std::optional<GpuSeen> read_gpu_seen(std::string_view line, const std::vector<GpuFacts>& ours);

}  // namespace hpcbatch::pilot

// What the helper beside the pilot says of this node's GPUs, line by line, and what a task does with
// its own.
#pragma once

#include "pilot/policy/room.hpp"

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <sys/types.h>

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

/// What one task does with its GPUs, from what is seen of them once a second.
class GpuUse {
 public:
  /// `memory` is the task's own on that device, `sharers` how many tasks have it, of whose energy
  /// and time each has its part.
  void add(const GpuSeen& seen, std::uint64_t memory, std::uint64_t energy_mj, unsigned sharers);

  /// Percent; what it does on several devices is their average.  Nothing: nobody looked.
  std::optional<unsigned> busy() const;
  /// Bytes of all its devices together, the most at a time.
  std::uint64_t peak() const { return peak_; }
  std::uint64_t energy_mj() const { return energy_mj_; }

 private:
  std::map<unsigned, std::uint64_t> memory_on_;
  double busy_{0};
  unsigned looks_{0};
  std::uint64_t peak_{0};
  std::uint64_t energy_mj_{0};
};

/// The bytes of one device that a task may take which was granted a part of it; nothing where it has
/// it alone, or nobody knows how much there is.
std::optional<std::uint64_t> gpu_memory_share(std::int64_t granted, std::uint64_t device_memory);

}  // namespace hpcbatch::pilot

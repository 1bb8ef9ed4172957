// What one task does with its GPUs, from what is seen of them once a second.
#pragma once

#include "pilot/policy/gpu_facts.hpp"
#include "pilot/policy/room.hpp"

#include <cstdint>
#include <map>
#include <optional>
#include <string>

namespace hpcbatch::pilot {

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

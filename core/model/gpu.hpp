// One GPU of a pilot's node, as the pilot tells of it.
#pragma once

#include <cstdint>
#include <string>

namespace hpcbatch {

struct Gpu {
  std::uint32_t number{0};  ///< among its pilot's
  std::string uuid;         ///< empty: not known
  std::string name;
  std::uint64_t memory{0};  ///< bytes; 0: not known
  std::string capability;   ///< of CUDA, as 8.0
  std::string driver;
  std::string trouble;  ///< why it is set aside; empty: it is used
  friend bool operator==(const Gpu&, const Gpu&) = default;
};

/// What one attempt did with its GPUs, where somebody looked.
struct GpuUse {
  std::uint32_t busy{0};       ///< percent of its time, on the average of them
  std::uint64_t memory{0};     ///< bytes of theirs, the most at a time
  std::uint64_t energy_mj{0};  ///< millijoules; of one that it shared its part
  friend bool operator==(const GpuUse&, const GpuUse&) = default;
};

}  // namespace hpcbatch

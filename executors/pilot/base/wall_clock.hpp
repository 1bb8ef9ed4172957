// The time of day as results tell it; nothing is decided by it.
#pragma once

#include <chrono>
#include <cstdint>

namespace hpcbatch::pilot {

/// Microseconds since 1970.
inline std::int64_t wall_clock_us() {
  return std::chrono::duration_cast<std::chrono::microseconds>(
             std::chrono::system_clock::now().time_since_epoch())
      .count();
}

}  // namespace hpcbatch::pilot

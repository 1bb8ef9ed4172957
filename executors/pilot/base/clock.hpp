// The clock of what a pilot does; what it decides is told the time.
#pragma once

#include <chrono>
#include <cstdint>

namespace hpcbatch::pilot {

// Time as the pilot counts it.

using Time = std::chrono::steady_clock::time_point;
using Duration = std::chrono::steady_clock::duration;

inline Time clock_now() {
  return std::chrono::steady_clock::now();
}

/// The time of day as results tell it, in microseconds since 1970; nothing is decided by it.
inline std::int64_t wall_clock_us() {
  return std::chrono::duration_cast<std::chrono::microseconds>(
             std::chrono::system_clock::now().time_since_epoch())
      .count();
}

}  // namespace hpcbatch::pilot

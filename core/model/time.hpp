// Points in time and durations as the engine knows them; only the runtime asks a clock.
#pragma once

#include <chrono>
#include <cstdint>

namespace hpcbatch {

using Duration = std::chrono::microseconds;
/// Wall-clock time that never runs backwards within one start of the engine (the runtime sees to
/// that).
using Time = std::chrono::sys_time<Duration>;

constexpr std::int64_t to_microseconds(Time time) {
  return time.time_since_epoch().count();
}
constexpr Time from_microseconds(std::int64_t value) {
  return Time{Duration{value}};
}

}  // namespace hpcbatch

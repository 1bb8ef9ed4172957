// Names of things and points in time: each is a type of its own, so that mixing them does not
// compile.
#pragma once

#include <chrono>
#include <compare>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

// Names of things: each is a type of its own, so that mixing them does not compile.

namespace hpcbatch {

/// Number of anything submitted: an array, or a single task, which is an array of one with index 0.
struct ArrayId {
  std::uint64_t value{0};
  friend auto operator<=>(ArrayId, ArrayId) = default;
};

/// One task: `12` where index is 0, `12.345` within an array, whose indices begin at 1.
struct TaskId {
  ArrayId array;
  std::uint32_t index{0};
  friend auto operator<=>(const TaskId&, const TaskId&) = default;
};

/// Random name of an allocation, which is also its name in the batch system.
struct AllocationId {
  std::string name;
  friend auto operator<=>(const AllocationId&, const AllocationId&) = default;
};

/// The pilot on one node of an allocation; shown as `NAME.RANK`.
struct PilotId {
  AllocationId allocation;
  std::uint32_t rank{0};
  friend auto operator<=>(const PilotId&, const PilotId&) = default;
};

/// One try at a task.  `epoch` fences: it holds the number of the engine's start in its upper 24
/// bits.
struct AttemptId {
  static constexpr unsigned kStartBits =
      40;  ///< the lower bits of an epoch, which count in a start
  TaskId task;
  std::uint32_t number{0};
  std::uint64_t epoch{0};
  std::uint64_t engine_start() const { return epoch >> kStartBits; }
  friend auto operator<=>(const AttemptId&, const AttemptId&) = default;
};

/// Of attempts that are leased together, of neighbours in one array: index and epoch count on.
inline AttemptId neighbour(AttemptId first, std::uint32_t place) {
  first.task.index += place;
  first.epoch += place;
  return first;
}

/// Ties the answer to a client's request; 0 where nobody waits.
struct RequestId {
  std::uint64_t value{0};
  friend auto operator<=>(RequestId, RequestId) = default;
};

std::string to_string(TaskId task);
std::string to_string(const PilotId& pilot);
std::optional<PilotId> parse_pilot(std::string_view text);

}  // namespace hpcbatch

template <>
struct std::hash<hpcbatch::ArrayId> {
  std::size_t operator()(hpcbatch::ArrayId id) const noexcept {
    return std::hash<std::uint64_t>{}(id.value);
  }
};
template <>
struct std::hash<hpcbatch::TaskId> {
  std::size_t operator()(hpcbatch::TaskId id) const noexcept {
    return std::hash<std::uint64_t>{}(id.array.value * 0x9E3779B97F4A7C15ULL + id.index);
  }
};

namespace hpcbatch {

// Points in time and durations as the engine knows them; only the runtime asks a clock.

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

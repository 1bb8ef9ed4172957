#pragma once

#include "model/ids.hpp"

#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

namespace hpcbatch::store {

// Where the time of a submission's tasks went, as sums and spreads over all that ran.

/// Of tasks that have ended and had started, each by its last attempt.  Clocks are those of the
/// nodes: where two differ, a duration is no less than nothing.
struct TaskTimes {
  std::uint64_t tasks{0};
  Duration ran{}, cpu{};   ///< of all together
  Duration half_within{};  ///< half of them ran no longer
  Duration most_within{};  ///< nine of ten ran no longer
  /// While at least one of them ran: less than from the first start to the last end where some were
  /// retried later.
  Duration busy{};
  Duration half_waited{};         ///< half of them started no later after the submit
  std::optional<TaskId> longest;  ///< nothing where not all were looked at
  Duration longest_ran{};
  std::uint64_t earlier_attempts{0};  ///< of all tasks, that had started
  Duration earlier_ran{};
  bool is_estimate{false};  ///< of every so many tasks, and what these make of all
};

/// Adds tasks up.  Pure.
class TimesOfTasks {
 public:
  explicit TimesOfTasks(Time submitted) : submitted_(submitted) {}
  void add(TaskId task, Time started, Time ended, Duration cpu);
  /// `tasks`: of how many those that were added speak.
  TaskTimes all(std::uint64_t tasks) &&;

 private:
  Time submitted_;
  TaskTimes times_;
  std::vector<std::pair<Time, Time>> runs_;  // starts and ends
};

}  // namespace hpcbatch::store

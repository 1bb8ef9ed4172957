#pragma once

#include "failure/failure.hpp"
#include "model/ids.hpp"

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

namespace hpcbatch::store {

// What many tasks have come to, as sums.

/// Of tasks that ended in one way.
struct EndsOfAWay {
  std::uint64_t tasks{0};
  std::optional<Time> started;  ///< the first
  Time ended{};                 ///< the last
};
/// By failure, exit code and signal.
using EndsByWay = std::map<std::tuple<Failure, std::int32_t, std::int32_t>, EndsOfAWay>;

/// An array, or all arrays of a submit.
struct EndsOfArrays {
  std::uint64_t tasks{0};          ///< in all
  std::vector<std::string> names;  ///< a few
  EndsByWay ends;
};

/// Sums over many rows that were made once, and what has ended since added to them: who watches asks
/// each second.  Pure.
class KnownEnds {
 public:
  const EndsOfArrays* find(ArrayId first, ArrayId last) const;
  /// Only what is large; returns it as it was given.
  EndsOfArrays keep(ArrayId first, ArrayId last, EndsOfArrays sums);
  void add(ArrayId array, const std::tuple<Failure, std::int32_t, std::int32_t>& way,
           const EndsOfAWay& ends);
  /// Something else has become of it than an end.
  void forget(ArrayId array);
  void forget_all() {
    arrays_.clear();
    submits_.clear();
  }

 private:
  struct Known {
    ArrayId last;
    EndsOfArrays sums;
  };
  std::map<ArrayId, Known>::iterator submit_of(ArrayId array);

  std::map<ArrayId, EndsOfArrays> arrays_;
  std::map<ArrayId, Known> submits_;  ///< of several arrays, by their first
};

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

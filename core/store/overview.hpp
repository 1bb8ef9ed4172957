#pragma once

#include "failure/failure.hpp"
#include "model/ids.hpp"

#include <chrono>
#include <cstdint>
#include <limits>
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
  /// The lowest index, of one array.
  std::uint32_t first{std::numeric_limits<std::uint32_t>::max()};
};
/// By failure, exit code and signal.
using EndsByWay = std::map<std::tuple<Failure, std::int32_t, std::int32_t>, EndsOfAWay>;

/// An array, or all arrays of a submit.
struct EndsOfArrays {
  std::uint64_t tasks{0};          ///< in all
  std::vector<std::string> names;  ///< a few
  EndsByWay ends;
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
    times_.clear();
  }

  using Clock = std::chrono::steady_clock;
  /// Where the array's time went, as it was added up before.  What has ended since is in it, unless
  /// the array `is_open` and adding up took so long that it is not yet due again: whoever looks each
  /// second must not have all rows read each second.
  const TaskTimes* times(ArrayId array, bool is_open, Clock::time_point now) const;
  /// Only what is large; `took` so long.
  void keep_times(ArrayId array, const TaskTimes& times, Clock::time_point now,
                  Clock::duration took);
  /// An attempt has failed, and its task has not ended.
  void note_attempt(ArrayId array);

 private:
  struct Known {
    ArrayId last;
    EndsOfArrays sums;
  };
  std::map<ArrayId, Known>::iterator submit_of(ArrayId array);

  struct KnownTimes {
    TaskTimes times;
    bool is_old{false};  ///< something has ended since
    Clock::time_point due{};
  };

  std::map<ArrayId, EndsOfArrays> arrays_;
  std::map<ArrayId, Known> submits_;  ///< of several arrays, by their first
  std::map<ArrayId, KnownTimes> times_;
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

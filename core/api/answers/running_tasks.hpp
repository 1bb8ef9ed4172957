// Which tasks run, for those who look again and again and want to hear only what has changed.
#pragma once

#include "model/ids.hpp"

#include <cstddef>
#include <cstdint>
#include <deque>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

namespace hpcbatch {

struct Lease;

/// A task that runs at a pilot.
struct RunningTask {
  TaskId task;
  std::uint32_t attempt{0};
  PilotId pilot;
  Time started{};
  friend bool operator==(const RunningTask&, const RunningTask&) = default;
};

/// Remembers what ran when it was last told, and numbers what has changed since.  One thread at a time.
/// Pure.
class RunningTasks {
 public:
  /// More are not shown.
  static constexpr std::size_t kMost = 20'000;

  /// Versions rise from `first`, which is greater than those of an engine before this one: what was
  /// heard from that one counts as nothing.
  explicit RunningTasks(std::uint64_t first) : version_(first), forgotten_(first) {}

  /// What runs now.  The cost grows with what runs, not with what waits or has ended.
  void look(const std::unordered_map<TaskId, Lease>& leases);

  std::uint64_t version() const { return version_; }
  struct Change {
    bool is_whole{false};              ///< `running` is all: what it does not name runs no more
    std::vector<RunningTask> running;  ///< that run since, or run otherwise
    std::vector<TaskId> gone;          ///< that ran and do no more
  };
  /// Of a version that is not known any more, or never was, all.
  Change since(std::uint64_t version) const;

 private:
  struct Entry {
    RunningTask task;
    std::uint64_t seen;  ///< in which look
  };
  void note(TaskId task);

  std::unordered_map<TaskId, Entry> running_;
  std::deque<std::pair<std::uint64_t, TaskId>> changes_;  ///< the oldest first
  std::uint64_t version_;
  std::uint64_t forgotten_;  ///< changes up to here are not in `changes_`
  std::uint64_t looks_{0};
};

}  // namespace hpcbatch

// Those who read a task's output as it is written, and those who feed its standard input.
#pragma once

#include "model/ids.hpp"

#include <array>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>

namespace hpcbatch {

/// Told of output in order and without gaps of each attempt; a new attempt begins anew.  `ended`
/// comes once, when the task's result is on disk.
struct Follower {
  TaskId task;
  std::function<void(std::uint32_t stream, const std::string& bytes)> output;
  std::function<void()> ended;
  AttemptId attempt;
  std::array<std::uint64_t, 3> seen{};  ///< bytes of stream 1 and 2 of `attempt`
};
using FollowerId = std::uint64_t;

class Followers {
 public:
  FollowerId add(Follower follower);
  void remove(FollowerId id);
  bool any(TaskId task) const { return by_task_.contains(task); }
  /// The least that all who follow the task have seen of a stream of this attempt.
  std::uint64_t seen(const AttemptId& attempt, std::uint32_t stream) const;
  void chunk(const AttemptId& attempt, std::uint32_t stream, std::uint64_t offset,
             const std::string& bytes);
  /// Ends those of `array` whose task `is_over` says has ended.
  void end(ArrayId array, const std::function<bool(TaskId)>& is_over);
  const std::multimap<TaskId, FollowerId>& by_task() const { return by_task_; }
  Follower* find(FollowerId id);

 private:
  std::map<FollowerId, std::shared_ptr<Follower>> followers_;
  std::multimap<TaskId, FollowerId> by_task_;
  FollowerId next_{1};
};

/// Pieces of standard input on their way to running tasks.  One piece of a task is with the pilot
/// at a time; it stays here until the pilot says that the task has been given it, so that a lost
/// link loses nothing.
class InputQueue {
 public:
  struct Piece {
    std::string bytes;
    bool end{false};
    std::optional<std::uint64_t>
        offset;  ///< none: behind what the task has been given when its turn comes
    std::function<void(bool taken)> then;
    bool asks{false};  ///< nothing: it is taken once the task waits for input
  };
  struct Sending {
    std::string bytes;
    std::uint64_t offset{0};
    bool end{false};
  };
  /// A piece that was taken before is taken again and changes nothing.
  void push(TaskId task, Piece piece);
  /// The task has been given all up to `offset`, and the end where `ended`; its pilot is ready for
  /// more.
  void wanted(TaskId task, std::uint64_t offset, bool ended);
  /// A piece that can go now.
  std::optional<Sending> next(TaskId task);
  void end(ArrayId array, const std::function<bool(TaskId)>& is_over);

 private:
  struct Line {
    std::deque<Piece> pieces;
    std::uint64_t given{0};
    bool ended{false};
    bool wanted{false};
  };
  static void settle(Line& line);
  std::map<TaskId, Line> lines_;
};

}  // namespace hpcbatch

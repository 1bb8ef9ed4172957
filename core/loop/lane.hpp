// One thread on which the blocking calls of one object run, one after another.
#pragma once

#include <condition_variable>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>

namespace hpcbatch {

/// Work is done in order.  A lane can be left behind in the middle of a call: its thread then ends
/// by itself when the call returns, and whatever was queued is dropped.
class Lane {
 public:
  using Work = std::function<void()>;

  Lane();
  Lane(const Lane&) = delete;
  Lane& operator=(const Lane&) = delete;
  /// Waits for the work in hand, drops the rest.
  ~Lane();

  void run(Work work);
  /// Never waits; the lane is of no use afterwards.
  void leave_behind();

 private:
  // Shared by the lane and its thread: either may outlive the other.
  struct State {
    std::mutex mutex;
    std::condition_variable changed;
    std::deque<Work> work;
    bool ending{false};
  };
  static void serve(const std::shared_ptr<State>& state);
  void end();

  std::shared_ptr<State> state_;
  std::thread thread_;
};

}  // namespace hpcbatch

// One thread on which the blocking calls of one object run, one after another.
#pragma once

#include "hpcbatch/transport.hpp"
#include "loop/asio.hpp"

#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <set>
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

// Blocking calls that may hang: one after another on a lane, each with its own time.

/// A call's time counts from when it begins, not from when it was asked for.  One that does not
/// come back in time is given up: the thread is left behind with it, and those that wait begin on a
/// new one, unless too many hang already: then they are given up after it, each in its turn.
class CallLane {
 public:
  using Work = std::function<void(Deadline)>;
  static constexpr std::size_t kMostLeftBehind = 8;

  /// A call is to come back at its deadline; after `grace` more it is given up.  `renew` is then to
  /// replace whatever the call may still use; where it cannot, the calls that wait are given up
  /// after it, each in its turn.
  CallLane(asio::io_context& loop, std::chrono::milliseconds grace, std::function<bool()> renew);
  CallLane(const CallLane&) = delete;
  CallLane& operator=(const CallLane&) = delete;
  /// Never waits.
  ~CallLane();

  /// `begin` is called on the loop when it is the call's turn, and gives what runs on the lane;
  /// `then` on the loop.
  void call(std::chrono::milliseconds limit, std::function<Work()> begin,
            std::function<void(bool given_up)> then);
  /// Some call has not been answered yet.
  bool is_busy() const { return running_ || !waiting_.empty(); }

 private:
  /// The way back from a thread, which may have been left behind and outlive the lane and the loop.
  struct Back {
    std::mutex mutex;
    CallLane* lane;                         // null: it is gone
    std::set<std::uint64_t> left_behind{};  // calls whose threads hang
  };
  struct Call {
    std::uint64_t number;
    std::chrono::milliseconds limit;
    std::function<Work()> begin;
    std::function<void(bool)> then;
    asio::steady_timer watch;
  };
  void begin_next();
  void go_on_elsewhere(std::uint64_t number);
  void returned(std::uint64_t number);
  void answer(const std::shared_ptr<Call>& call, bool given_up);

  asio::io_context& loop_;
  std::chrono::milliseconds grace_;
  std::function<bool()> renew_;
  std::deque<std::shared_ptr<Call>> waiting_;
  std::shared_ptr<Call> running_;
  std::uint64_t calls_{0};
  std::shared_ptr<Back> back_;
  std::unique_ptr<Lane> lane_{std::make_unique<Lane>()};
};

}  // namespace hpcbatch

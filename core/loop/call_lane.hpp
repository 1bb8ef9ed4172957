// Blocking calls that may hang: one after another on a lane, each with its own time.
#pragma once

#include "loop/asio.hpp"
#include "loop/lane.hpp"

#include "hpcbatch/transport.hpp"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <set>

namespace hpcbatch {

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

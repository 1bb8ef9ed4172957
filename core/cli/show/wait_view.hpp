// What is told of tasks that are waited for, while it lasts and at the end.
#pragma once

#include "cli/show/terminal.hpp"

#include <boost/json/object.hpp>

#include <chrono>
#include <deque>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace hpcbatch {

/// How fast tasks end, over the last of the time that was watched.
class Pace {
 public:
  using Clock = std::chrono::steady_clock;
  void seen(double ended, Clock::time_point now) {
    seen_.emplace_back(now, ended);
    while (seen_.size() > 2 && now - seen_.front().first > kSpan) seen_.pop_front();
  }
  /// A second; 0 where it cannot be told.
  double rate() const {
    if (seen_.size() < 2) return 0;
    const std::chrono::duration<double> time = seen_.back().first - seen_.front().first;
    return time.count() > 0 ? (seen_.back().second - seen_.front().second) / time.count() : 0;
  }

 private:
  static constexpr std::chrono::minutes kSpan{1};
  std::deque<std::pair<Clock::time_point, double>> seen_;
};

/// Of counts as `POST /v1/tasks/wait` answers them.
class WaitView {
 public:
  using Clock = std::chrono::steady_clock;

  WaitView(StatusLine& status, bool is_json) : status_(status), is_json_(is_json) {}
  /// A line on a terminal, from the first second on; elsewhere one a minute, of several tasks the
  /// first at once.
  void progress(const boost::json::object& counts);
  /// How it ended and what to type next; the exit code.
  int end(const boost::json::object& counts, const std::vector<std::string>& ids);

 private:
  StatusLine& status_;
  bool is_json_;
  Pace pace_;
  Clock::time_point begin_{Clock::now()};
  std::optional<Clock::time_point> told_;
};

}  // namespace hpcbatch

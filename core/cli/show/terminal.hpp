// The terminal: how much room it has, and a line of progress on it.
#pragma once

#include <boost/json/object.hpp>

#include <chrono>
#include <cstddef>
#include <deque>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace hpcbatch {

/// One line of progress on a terminal's standard error, drawn over itself; nothing where it is no
/// terminal.
class StatusLine {
 public:
  StatusLine();
  ~StatusLine() { clear(); }
  StatusLine(const StatusLine&) = delete;
  StatusLine& operator=(const StatusLine&) = delete;

  bool is_visible() const { return is_terminal_; }
  /// How many letters it shows; nothing where it is no terminal.
  std::optional<std::size_t> room() const;
  void show(const std::string& text);
  /// Before anything else is written to the terminal.
  void clear();

 private:
  bool is_terminal_;
};

struct TerminalSize {
  std::size_t rows{24};
  std::size_t columns{80};
};

/// Nothing where the descriptor is no terminal; 24 by 80 where one does not tell.
std::optional<TerminalSize> terminal_size(int descriptor);

/// How many letters a line of standard output has room for; nothing where it is no terminal.
std::optional<std::size_t> columns_of_output();

/// The first bytes of a line that take at most so many columns.
std::string first_letters(const std::string& line, std::size_t letters);

/// The line as it can be shown (show_lines), or, on a terminal, as several that it does not cut; those behind the first are
/// indented.
std::string lines_for(int descriptor, std::string_view said, std::size_t indent);

/// `hpcbatch: TEXT` on standard error, as lines_for has it; a line of progress makes room for it.
void say(std::string_view text);

// What is told of work that takes long, while it lasts and at the end.

/// How fast work goes, over the last of the time that was watched.
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

/// Long work while it lasts: how much of it is done, how fast it goes, how long the rest takes.
class Progress {
 public:
  using Clock = std::chrono::steady_clock;
  /// `WHAT 3 of 12, 2 a second, 4s left`; `3 WHAT, 2 a second` where `of` is 0, because nobody
  /// knows it.  Another `what` begins other work.
  std::string line(const std::string& what, double done, double of, Clock::time_point now);

 private:
  std::string what_;
  Pace pace_{};
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

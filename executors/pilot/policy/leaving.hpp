// When a pilot leaves that has nothing to do, and what it writes down of results before that.
#pragma once

#include "pilot/base/clock.hpp"

#include <cstddef>
#include <optional>

namespace hpcbatch::pilot {

// When a pilot has had nothing to do for long enough to leave.  Pure.
//
// The engine may be slow to hear of what has ended here, and slow to send more: by files, or beside a
// disk that is busy, for longer than the site's limit.  A pilot that left meanwhile would cost a
// batch job for every few tasks.

class Idleness {
 public:
  /// `limit`: zero, it never leaves for that.  `until_found`: so long it looks for the engine.
  Idleness(Duration limit, Duration until_found, Time now)
      : limit_(limit), until_found_(until_found), started_(now), worked_(now), since_(now) {}

  /// The engine has taken it in, with leases to come as late as that took, should there be any.
  void welcomed(Time now);
  std::optional<Time> welcomed_at() const { return welcomed_; }
  /// Until now it had something to do.
  void worked(Time now) { since_ = worked_ = now; }
  /// Whether the engine has yet to answer to a result; only one that can be heard will.
  void owed(bool is_owed, bool is_linked, Time now);
  /// It has, to one of them.
  void answered(Time now);
  /// The engine wants it there until then, whatever there is to do.
  void stays_until(Time until, Time now);
  /// No time has passed for so long.
  void suspended(Duration time);

  /// Nothing: never.
  std::optional<Time> ends() const;
  /// When one that nobody has taken in gives up.
  std::optional<Time> unregistered_ends() const;

 private:
  Duration limit_, until_found_;
  Time started_;
  Time worked_;
  Time since_;  // or since an answer, which might have brought more
  std::optional<Time> welcomed_;
  std::optional<Time> owed_since_;
  std::optional<Time> stays_until_;
  Duration answer_took_{};  // the last one
};

// When a pilot writes down the results that the engine has not acknowledged, so that they outlast it,
// and when it gives that up.  Pure.

class Outbox {
 public:
  /// One result more, or one less, that is not acknowledged.
  void owe(std::size_t bytes);
  void acknowledged(std::size_t bytes);
  bool owes() const { return count_ > 0; }
  /// An earlier process has left one, whose results are owed now.
  void found() { is_there_ = true; }
  /// What lies there is the engine's to read.
  void leave_alone() { is_there_ = false; }

  /// Before the end, too: results that may be lost at any moment, or that grow to too much.  One that
  /// has become empty is to be removed.
  bool is_due(bool may_be_killed) const;
  /// True: it is to be written now.
  bool begin(Time now);
  void failed(Time now);

  bool has_failed() const { return retry_at_.has_value(); }
  bool lacks_results() const { return owes() && !is_current_; }
  /// When to try again.
  std::optional<Time> retry_at() const;
  /// It has failed for too long; `in_haste`: the end may come at any moment.
  bool is_hopeless(Time now, bool in_haste) const;
  /// Whether it may have become possible since it was tried last; true once.
  bool may_try_once_more(Time now);

 private:
  static constexpr std::size_t kFrom = std::size_t{1} << 20;
  std::size_t count_{0}, bytes_{0};
  std::size_t write_at_{kFrom};  // when more bytes than that wait
  bool is_there_{false};
  bool is_current_{false};
  std::optional<Time> retry_at_;
  std::optional<Time> failing_since_;
  bool tried_once_more_{false};  // though there was no hope left
};

}  // namespace hpcbatch::pilot

// When a pilot has had nothing to do for long enough to leave.  Pure.
//
// The engine may be slow to hear of what has ended here, and slow to send more: by files, or beside a
// disk that is busy, for longer than the site's limit.  A pilot that left meanwhile would cost a
// batch job for every few tasks.
#pragma once

#include "pilot/base/time.hpp"

#include <optional>

namespace hpcbatch::pilot {

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

}  // namespace hpcbatch::pilot

// When a pilot writes down the results that the engine has not acknowledged, so that they outlast it,
// and when it gives that up.  Pure.
#pragma once

#include "pilot/base/time.hpp"

#include <cstddef>
#include <optional>

namespace hpcbatch::pilot {

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

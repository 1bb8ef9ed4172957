// What can be told of waits without learning: medians, and the newest waits of the like.
#pragma once

#include "foresight/learned/poll_file.hpp"
#include "foresight/wait_history.hpp"

#include <cstdint>
#include <map>
#include <utility>
#include <vector>

namespace hpcbatch::foresight {

/// Partition and class of limit: up to 4 hours, up to a day, longer.
using WaitClass = std::pair<std::uint32_t, int>;
WaitClass wait_class_of(const PolledJob& job);

/// Medians of waits that were over at a moment.
class MedianWaits {
 public:
  /// Of these rows those polled before `now` whose waits are over by then.
  MedianWaits(const Polls& polls, const std::vector<std::size_t>& rows, Seconds now);
  double of_all() const { return of_all_; }     ///< seconds; 0 of none
  double of_class(const PolledJob& job) const;  ///< seconds; of all where it has none

 private:
  double of_all_{0};
  std::map<WaitClass, double> of_class_;
};

/// The newest waits of each class, as `WaitHistory` keeps them, at a moment.
class ClassHistories {
 public:
  ClassHistories(const Polls& polls, const std::vector<std::size_t>& rows, Seconds now);
  /// Of its class, else of all; nothing where these are too few or no longer right.
  std::optional<WaitBound> bound(const PolledJob& job) const;

 private:
  WaitHistory of_all_;
  std::map<WaitClass, WaitHistory> of_class_;
};

}  // namespace hpcbatch::foresight

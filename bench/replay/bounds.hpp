// What can be told of waits without learning, bounds of what was told, and how far off it was.
#pragma once

#include "foresight/learned/wait_model.hpp"
#include "replay/poll_file.hpp"

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <utility>
#include <vector>

namespace hpcbatch::foresight {

// How far off waits were that had been told.

struct WaitErrors {
  std::size_t count{0};
  double mean_square{0};            ///< of the logarithms (to 10, of seconds plus 1)
  double within_2{0}, within_3{0};  ///< part that was off by no more than that factor
  double median{0};                 ///< seconds, without its sign
};

/// `told`: seconds, one for each of `waited`.  All 0 of none.
WaitErrors errors_of(const std::vector<double>& told, const std::vector<Seconds>& waited);

/// Part of the waits that were no longer than their bound; 1 of none.
double part_held(const std::vector<double>& bounds, const std::vector<Seconds>& waited);

// What can be told of waits without learning: medians, and the newest waits of the like.

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

// Bounds of waits from how far off what was told before has been, whoever told it.
//
// Split-conformal prediction (Lei and others, JASA 2018): of residuals that a model has left on days
// that it had not seen, the quantile is added to what it tells next.  Waits drift, so that a bound for
// nine in ten holds for fewer or more: after each day the level that is aimed at moves against what
// has been missed (adaptive conformal inference, Gibbs and Candes, NeurIPS 2021).  A job that still
// waits says how long its residual is at least (product-limit estimate, Kaplan and Meier, JASA 1958).

struct ConformalSettings {
  double level{0.9};                ///< part of the waits that are to be no longer
  Seconds window{10 * kDay};        ///< of residuals
  double step{0.4};                 ///< by which a day's misses move the level
  std::size_t fewest_of_group{50};  ///< with fewer residuals those of all groups count
};

/// Jobs whose waits are told about as well, as a number: by how many of their poll are of their shape,
/// which wait and start together, and by whether the wait is told to be long (log_of_wait).
std::uint32_t spread_group(std::size_t crowd, double predicted);

/// A wait that was told.
struct ToldWait {
  Seconds polled{0};
  std::uint32_t group{0};  ///< of those that are told about as well
  double predicted{0};     ///< as log_of_wait
  double bound{0};         ///< as log_of_wait
  Seconds waited{0};  ///< in the end; before it is over nobody looks at more than that it is not
};

/// What is to be added to a prediction, as log_of_wait.
struct Shifts {
  double all{0};
  std::map<std::uint32_t, double> of_group;
  double of(std::uint32_t group) const;
};

class ConformalBounds {
 public:
  explicit ConformalBounds(const ConformalSettings& settings) : settings_(settings) {}
  /// In the order of the polls.
  void add(const ToldWait& told);
  /// For a poll at that moment, from polls before it as far as they are known then; nothing where
  /// there are none.
  std::optional<Shifts> at(Seconds now) const;
  /// The level that is aimed at then.
  double level_at(Seconds now) const;

 private:
  ConformalSettings settings_;
  std::vector<ToldWait> told_;
};

}  // namespace hpcbatch::foresight

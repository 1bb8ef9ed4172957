// Bounds of waits from how far off what was told before has been, whoever told it.
//
// Split-conformal prediction (Lei and others, JASA 2018): of residuals that a model has left on days
// that it had not seen, the quantile is added to what it tells next.  Waits drift, so that a bound for
// nine in ten holds for fewer or more: after each day the level that is aimed at moves against what
// has been missed (adaptive conformal inference, Gibbs and Candes, NeurIPS 2021).  A job that still
// waits says how long its residual is at least (product-limit estimate, Kaplan and Meier, JASA 1958).
#pragma once

#include "foresight/job.hpp"

#include <cstdint>
#include <map>
#include <optional>
#include <vector>

namespace hpcbatch::foresight {

/// log10 of seconds plus one, in which errors and bounds are reckoned.
double log_of_wait(double seconds);
double wait_of_log(double logarithm);

/// A value, or what it is more than.
struct Censored {
  double value{0};
  bool is_more{false};
};
/// The least value that so many (0 to 1) are not above; the largest where nobody knows; of none
/// nothing.
std::optional<double> quantile_of_censored(std::vector<Censored> values, double q);

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

// How long the next will wait, from how long those before it did, with a bound that can be checked.
//
// The n + 1st of waits that are alike is no longer than the k-th of the n before it with probability
// k/(n + 1), whatever their distribution (a prediction interval of order statistics, as in QBETS of
// Brevik, Nurmi and Wolski).  Where waits change, what was before is forgotten: three in a row above
// what nine in ten should stay below, or below what one in ten should, are no chance.
#pragma once

#include "foresight/coverage.hpp"
#include "foresight/job.hpp"

#include <cstddef>
#include <deque>
#include <optional>
#include <vector>

namespace hpcbatch::foresight {

/// Of a whole wait, from the submit on.
struct WaitBound {
  Seconds half{0};      ///< as probable to be longer as not
  Seconds most{0};      ///< nine in ten are no longer
  std::size_t from{0};  ///< waits that say so
};

/// How good the bounds were that stood before each wait was known.
struct WaitScore {
  std::size_t count{0};
  std::size_t halves{0};          ///< of these, which said more than the latest
  double by_half{0}, by_most{0};  ///< part that waited no longer
  /// Of the logarithms (to 10, of seconds plus 1) of the halves and of the waits.
  double mean_square{0};
  double within_2{0}, within_3{0};  ///< part whose half was off by no more than that factor

  /// One that had been told `half`, where anybody could say that, and `most`.
  void add(std::optional<Seconds> half, Seconds most, Seconds wait);
};

class WaitHistory {
 public:
  /// One that is over; in the order of their ends.
  void add(Seconds wait);
  /// For one that has waited so long already, of those that waited longer.  Nothing of fewer than
  /// ten, nor while the bounds have not held.
  std::optional<WaitBound> bound(Seconds waited = 0) const;
  /// What a bound is told from, in order; empty where none is.
  std::vector<Seconds> told() const;
  const WaitScore& score() const { return score_; }
  /// Whether the bounds that were told have held.
  bool is_trusted() const { return coverage_.is_right(); }
  std::size_t count() const { return waits_.size(); }

 private:
  std::optional<WaitBound> bound_of(Seconds waited) const;
  void judge(const WaitBound& told, Seconds wait);
  void note_change(Seconds wait);

  std::deque<Seconds> waits_;        ///< since the last change, the newest last
  std::size_t above_{0}, below_{0};  ///< in a row
  Coverage coverage_{0.9};
  WaitScore score_;
};

}  // namespace hpcbatch::foresight

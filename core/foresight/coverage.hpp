// Whether the bounds that were told have held.
#pragma once

#include <cstddef>
#include <deque>

namespace hpcbatch::foresight {

/// Of the last so many bounds: they are right for as long as so few that held would not be rarer
/// than one in a hundred, were each to hold with probability `nominal` (a binomial test).
class Coverage {
 public:
  explicit Coverage(double nominal, std::size_t window = 60) : nominal_(nominal), window_(window) {}
  void add(bool held);
  bool is_right() const;
  std::size_t count() const { return held_.size(); }
  /// Part of them that held; 1 of none.
  double value() const;

 private:
  double nominal_;
  std::size_t window_;
  std::deque<bool> held_;
};

/// P(X <= k) of n trials with probability p each.
double binomial_at_most(std::size_t k, std::size_t n, double p);

}  // namespace hpcbatch::foresight

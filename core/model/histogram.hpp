// How many values there were up to each of a few bounds, and their sum: what a monitoring system adds
// up over time and over engines.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>

namespace hpcbatch {

/// Only ever grows.  `Bounds` are sorted, each the most that still counts there.
template <const auto& Bounds>
class Histogram {
 public:
  static constexpr const auto& bounds() { return Bounds; }

  /// What is below 0 counts as 0; what is no number does not count.
  void add(double value) {
    if (std::isnan(value)) return;
    const auto at = std::lower_bound(Bounds.begin(), Bounds.end(), value) - Bounds.begin();
    ++counts_[static_cast<std::size_t>(at)];
    sum_ += std::max(0.0, value);
  }
  void add(const Histogram& other) {
    for (std::size_t i = 0; i < counts_.size(); ++i) counts_[i] += other.counts_[i];
    sum_ += other.sum_;
  }
  /// Of values in each range alone; the last is that above all bounds.
  const auto& counts() const { return counts_; }
  double sum() const { return sum_; }

 private:
  std::array<std::uint64_t, Bounds.size() + 1> counts_{};
  double sum_{0};
};

/// Of waits and of runs, in seconds: from a moment to a week.
inline constexpr std::array kWaitBounds{0.1,    1.0,     10.0,    60.0,    300.0,    900.0,
                                        3600.0, 14400.0, 43200.0, 86400.0, 259200.0, 604800.0};
/// Of work for a disk, in seconds.
inline constexpr std::array kDiskBounds{0.0003, 0.001, 0.003, 0.01, 0.03, 0.1,
                                        0.3,    1.0,   3.0,   10.0, 30.0};

using WaitHistogram = Histogram<kWaitBounds>;
using DiskHistogram = Histogram<kDiskBounds>;

}  // namespace hpcbatch

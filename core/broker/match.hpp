// Which work belongs on which device, so that all of it is done soonest: a fractional assignment of
// work to unrelated machines, by prices.
//
// Each device has a price for a unit and second of it.  Work goes where it costs least; what too
// much work goes to becomes dearer (multiplicative weights: Plotkin, Shmoys, Tardos, "Fast
// approximation algorithms for fractional packing and covering problems", 1995).  With the prices
// at hand, whose turn it is at a device is seen without a plan: that of the work which would have to
// pay most elsewhere.
#pragma once

#include <cstddef>
#include <limits>
#include <vector>

namespace hpcbatch::broker {

/// It cannot run there.
inline constexpr double kNever = std::numeric_limits<double>::infinity();

/// Tasks that are alike.
struct Work {
  double tasks{0};
  std::vector<double> cost;  ///< of one, by device: units times seconds, or kNever
};

/// By device.
struct Prices {
  std::vector<double> of;
  std::vector<double> until;  ///< seconds until all work is done that goes there
};

/// `units` by device, of which each is more than 0; `busy`: units times seconds that each is busy
/// before it can begin.
Prices match(const std::vector<double>& units, const std::vector<double>& busy,
             const std::vector<Work>& all);

/// What a task pays at a device against what it pays where that is least: 1 or more.
double regret(const Prices& prices, const Work& work, std::size_t device);

}  // namespace hpcbatch::broker

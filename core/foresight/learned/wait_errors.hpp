// How far off waits were that had been told.
#pragma once

#include "foresight/job.hpp"

#include <cstddef>
#include <vector>

namespace hpcbatch::foresight {

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

}  // namespace hpcbatch::foresight

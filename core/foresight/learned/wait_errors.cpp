#include "foresight/learned/wait_errors.hpp"

#include "foresight/learned/conformal.hpp"

#include <algorithm>
#include <cmath>

namespace hpcbatch::foresight {

WaitErrors errors_of(const std::vector<double>& told, const std::vector<Seconds>& waited) {
  WaitErrors errors;
  errors.count = told.size();
  if (told.empty()) return errors;
  std::vector<double> seconds;
  seconds.reserve(told.size());
  for (std::size_t at = 0; at < told.size(); ++at) {
    const auto real = static_cast<double>(waited[at]);
    const double off = std::abs(log_of_wait(told[at]) - log_of_wait(real));
    errors.mean_square += off * off;
    errors.within_2 += off <= std::log10(2.0) + 1e-12 ? 1 : 0;
    errors.within_3 += off <= std::log10(3.0) + 1e-12 ? 1 : 0;
    seconds.push_back(std::abs(told[at] - real));
  }
  const auto count = static_cast<double>(told.size());
  errors.mean_square /= count;
  errors.within_2 /= count;
  errors.within_3 /= count;
  const auto middle = seconds.begin() + static_cast<std::ptrdiff_t>(seconds.size() / 2);
  std::nth_element(seconds.begin(), middle, seconds.end());
  errors.median = *middle;
  return errors;
}

double part_held(const std::vector<double>& bounds, const std::vector<Seconds>& waited) {
  if (bounds.empty()) return 1;
  std::size_t held = 0;
  for (std::size_t at = 0; at < bounds.size(); ++at)
    held += static_cast<double>(waited[at]) <= bounds[at] ? 1 : 0;
  return static_cast<double>(held) / static_cast<double>(bounds.size());
}

}  // namespace hpcbatch::foresight

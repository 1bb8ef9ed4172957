#include "foresight/coverage.hpp"

#include <algorithm>
#include <cmath>

namespace hpcbatch::foresight {
namespace {

constexpr double kTooRare = 0.01;

}  // namespace

double binomial_at_most(std::size_t k, std::size_t n, double p) {
  if (k >= n) return 1;
  double sum = 0;
  for (std::size_t i = 0; i <= k; ++i) {
    const auto x = static_cast<double>(i), all = static_cast<double>(n);
    sum += std::exp(std::lgamma(all + 1) - std::lgamma(x + 1) - std::lgamma(all - x + 1) +
                    x * std::log(p) + (all - x) * std::log1p(-p));
  }
  return std::min(sum, 1.0);
}

void Coverage::add(bool held) {
  held_.push_back(held);
  if (held_.size() > window_) held_.pop_front();
}

bool Coverage::is_right() const {
  const auto good = static_cast<std::size_t>(std::count(held_.begin(), held_.end(), true));
  return binomial_at_most(good, held_.size(), nominal_) >= kTooRare;
}

double Coverage::value() const {
  if (held_.empty()) return 1;
  return static_cast<double>(std::count(held_.begin(), held_.end(), true)) /
         static_cast<double>(held_.size());
}

}  // namespace hpcbatch::foresight

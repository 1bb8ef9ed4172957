#include "broker/match.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace hpcbatch::broker {
namespace {

constexpr int kRounds = 400;
constexpr double kFirstStep = 0.5;

std::size_t cheapest(const std::vector<double>& prices, const std::vector<double>& cost) {
  std::size_t best = 0;
  double least = kNever;
  for (std::size_t at = 0; at < cost.size(); ++at) {
    const double paid = prices[at] * cost[at];
    if (paid < least) {
      least = paid;
      best = at;
    }
  }
  return best;
}

bool runs_somewhere(const Work& work) {
  return work.tasks > 0 && std::any_of(work.cost.begin(), work.cost.end(),
                                       [](double cost) { return std::isfinite(cost); });
}

/// So that all units together cost 1.
void normalise(std::vector<double>& prices, const std::vector<double>& units) {
  const double sum = std::inner_product(prices.begin(), prices.end(), units.begin(), 0.0);
  for (double& price : prices) price /= sum;
}

}  // namespace

Prices match(const std::vector<double>& units, const std::vector<double>& busy,
             const std::vector<Work>& all) {
  const std::size_t devices = units.size();
  // Of both the mean over all rounds.
  Prices mean{std::vector<double>(devices, 0), std::vector<double>(devices, 0)};
  if (devices == 0) return mean;
  std::vector<double> prices(devices, 1);
  normalise(prices, units);
  for (int round = 1; round <= kRounds; ++round) {
    std::vector<double> load = busy;
    for (const Work& work : all) {
      if (!runs_somewhere(work)) continue;
      const std::size_t at = cheapest(prices, work.cost);
      load[at] += work.tasks * work.cost[at];
    }
    for (std::size_t at = 0; at < devices; ++at) {
      mean.of[at] += prices[at] / kRounds;
      mean.until[at] += load[at] / units[at] / kRounds;
    }
    double highest = 0;
    for (std::size_t at = 0; at < devices; ++at) highest = std::max(highest, load[at] / units[at]);
    if (highest <= 0) break;
    const double step = kFirstStep / std::sqrt(round);
    for (std::size_t at = 0; at < devices; ++at)
      prices[at] *= std::exp(step * (load[at] / units[at] / highest - 1));
    normalise(prices, units);
  }
  return mean;
}

double regret(const Prices& prices, const Work& work, std::size_t device) {
  if (!std::isfinite(work.cost[device])) return kNever;
  const std::size_t best = cheapest(prices.of, work.cost);
  return prices.of[device] * work.cost[device] / (prices.of[best] * work.cost[best]);
}

}  // namespace hpcbatch::broker

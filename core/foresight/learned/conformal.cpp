#include "foresight/learned/conformal.hpp"

#include <algorithm>
#include <array>
#include <cmath>

namespace hpcbatch::foresight {
namespace {

/// A level that has moved so far does not come back in time.
constexpr double kLeastMisses = 0.1, kMostMisses = 4;

constexpr std::array<std::size_t, 3> kCrowds = {5, 50, 200};
/// As log_of_wait: an hour and three quarters.
constexpr double kLongWait = 3.8;

bool is_over_by(const ToldWait& told, Seconds now) {
  return told.waited <= now - told.polled;
}

/// What is known by then; nothing where it may yet hold or not.
std::optional<bool> missed_by(const ToldWait& told, Seconds now) {
  const Seconds so_far = std::min(told.waited, now - told.polled);
  if (log_of_wait(static_cast<double>(so_far)) > told.bound) return true;
  if (is_over_by(told, now)) return false;
  return std::nullopt;
}

Censored residual_by(const ToldWait& told, Seconds now) {
  const Seconds so_far = std::min(told.waited, now - told.polled);
  return {log_of_wait(static_cast<double>(so_far)) - told.predicted, !is_over_by(told, now)};
}

}  // namespace

double log_of_wait(double seconds) {
  return std::log10(seconds + 1);
}
double wait_of_log(double logarithm) {
  return std::pow(10.0, logarithm) - 1;
}

std::optional<double> quantile_of_censored(std::vector<Censored> values, double q) {
  if (values.empty()) return std::nullopt;
  std::sort(values.begin(), values.end(), [](const Censored& one, const Censored& other) {
    if (one.value != other.value) return one.value < other.value;
    return !one.is_more && other.is_more;
  });
  double above = 1;
  for (std::size_t at = 0; at < values.size(); ++at) {
    if (values[at].is_more) continue;
    above *= 1 - 1 / static_cast<double>(values.size() - at);
    if (above <= 1 - q + 1e-12) return values[at].value;
  }
  return values.back().value;
}

std::uint32_t spread_group(std::size_t crowd, double predicted) {
  const auto above = std::count_if(kCrowds.begin(), kCrowds.end(),
                                   [crowd](std::size_t least) { return crowd >= least; });
  return static_cast<std::uint32_t>(2 * above) + (predicted >= kLongWait ? 1 : 0);
}

double Shifts::of(std::uint32_t group) const {
  const auto found = of_group.find(group);
  return found == of_group.end() ? all : found->second;
}

void ConformalBounds::add(const ToldWait& told) {
  told_.push_back(told);
}

double ConformalBounds::level_at(Seconds now) const {
  const double nominal = 1 - settings_.level;
  double misses = nominal;
  for (std::size_t first = 0, last = 0; first < told_.size(); first = last) {
    std::size_t known = 0, missed = 0;
    for (; last < told_.size() && told_[last].polled == told_[first].polled; ++last) {
      if (told_[last].polled >= now) continue;
      const auto is_missed = missed_by(told_[last], now);
      known += is_missed ? 1 : 0;
      missed += is_missed.value_or(false) ? 1 : 0;
    }
    if (known == 0) continue;
    const double part = static_cast<double>(missed) / static_cast<double>(known);
    misses = std::clamp(misses + settings_.step * (nominal - part), nominal * kLeastMisses,
                        std::min(nominal * kMostMisses, 0.9));
  }
  return 1 - misses;
}

std::optional<Shifts> ConformalBounds::at(Seconds now) const {
  std::vector<Censored> all;
  std::map<std::uint32_t, std::vector<Censored>> of_group;
  for (const ToldWait& told : told_) {
    if (told.polled >= now || told.polled < now - settings_.window) continue;
    all.push_back(residual_by(told, now));
    of_group[told.group].push_back(all.back());
  }
  const double level = level_at(now);
  const auto shift = quantile_of_censored(std::move(all), level);
  if (!shift) return std::nullopt;
  Shifts shifts{*shift, {}};
  for (auto& [group, residuals] : of_group) {
    if (residuals.size() < settings_.fewest_of_group) continue;
    shifts.of_group[group] = *quantile_of_censored(std::move(residuals), level);
  }
  return shifts;
}

}  // namespace hpcbatch::foresight

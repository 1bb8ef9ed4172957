#include "broker/speed_table.hpp"

#include <algorithm>
#include <cmath>

namespace hpcbatch::broker {
namespace {

// What ran so long ago that so many came after it counts little.
constexpr double kRemembered = 32;
// Shorter is the clocks' tick.
constexpr double kShortest = 1e-3;

double in_seconds(Duration run) {
  return std::max(kShortest, std::chrono::duration<double>(run).count());
}

/// Of a kind, on all its devices together: the spread of its inputs.  Three runs on a device are too
/// few to know one of its own.
double spread(const SpeedTable::ByDevice& devices) {
  double sum = 0, weights = 0;
  for (const auto& [device, runs] : devices) {
    sum += runs.variance * runs.count;
    weights += runs.count;
  }
  return weights > 0 ? sum / weights : 0;
}

double standard_error(const Runs& runs) {
  return std::sqrt(runs.variance / std::clamp(runs.count, 1.0, kRemembered));
}

}  // namespace

void learn(Runs& runs, Duration run) {
  const double value = std::log(in_seconds(run));
  const double weight = 1 / std::min(kRemembered, runs.count + 1);
  const double off = value - runs.mean;
  runs.mean += weight * off;
  runs.variance = (1 - weight) * (runs.variance + weight * off * off);
  ++runs.count;
}

Runs put_together(const Runs& a, const Runs& b) {
  const double count = a.count + b.count;
  if (count <= 0) return {};
  const double part = b.count / count;
  const double off = b.mean - a.mean;
  return {a.mean + part * off,
          (1 - part) * a.variance + part * b.variance + part * (1 - part) * off * off, count};
}

void SpeedTable::learn(const std::string& kind, const std::string& device, Duration run) {
  if (kinds_.size() >= kMostKinds && !kinds_.contains(kind)) return;
  broker::learn(kinds_[kind][device], run);
}

void SpeedTable::add(const std::string& kind, const std::string& device, const Runs& runs) {
  if (runs.count <= 0 || (kinds_.size() >= kMostKinds && !kinds_.contains(kind))) return;
  Runs& there = kinds_[kind][device];
  there = put_together(there, runs);
}

const Runs* SpeedTable::find(std::string_view kind, std::string_view device) const {
  const auto of_kind = kinds_.find(kind);
  if (of_kind == kinds_.end()) return nullptr;
  const auto at = of_kind->second.find(device);
  return at == of_kind->second.end() ? nullptr : &at->second;
}

/// Of logarithms: how much longer others take on `to`.
std::optional<double> SpeedTable::ratio(std::string_view from, std::string_view to) const {
  std::vector<double> ratios;
  for (const auto& [kind, devices] : kinds_) {
    const auto a = devices.find(from), b = devices.find(to);
    if (a != devices.end() && b != devices.end()) ratios.push_back(b->second.mean - a->second.mean);
  }
  if (ratios.empty()) return std::nullopt;
  const auto middle = ratios.begin() + static_cast<std::ptrdiff_t>(ratios.size() / 2);
  std::nth_element(ratios.begin(), middle, ratios.end());
  return *middle;
}

std::optional<double> SpeedTable::seconds(std::string_view kind, std::string_view device) const {
  const auto of_kind = kinds_.find(kind);
  if (of_kind == kinds_.end()) return std::nullopt;
  const double above_mean = spread(of_kind->second) / 2;
  if (const Runs* runs = find(kind, device)) return std::exp(runs->mean + above_mean);
  // From each device on which it ran, as much as is known of it there; where nothing ran on both,
  // one is taken to be as fast as the other.
  double sum = 0, weights = 0;
  bool is_known = false;
  for (const auto& [other, runs] : of_kind->second) {
    const auto there = ratio(other, device);
    if (is_known && !there) continue;
    if (there && !is_known) sum = weights = 0;
    is_known = is_known || there.has_value();
    sum += (runs.mean + above_mean + there.value_or(0)) * runs.count;
    weights += runs.count;
  }
  if (weights <= 0) return std::nullopt;
  return std::exp(sum / weights);
}

std::optional<double> SpeedTable::hoped_seconds(std::string_view kind,
                                                std::string_view device) const {
  auto expected = seconds(kind, device);
  if (const Runs* runs = find(kind, device)) *expected *= std::exp(-standard_error(*runs));
  return expected;
}

}  // namespace hpcbatch::broker

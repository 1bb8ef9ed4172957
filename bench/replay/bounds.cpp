#include "replay/bounds.hpp"

#include <algorithm>
#include <array>
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

namespace {

/// Those whose waits are over, by their ends.
std::vector<std::size_t> rows_over(const Polls& polls, const std::vector<std::size_t>& rows,
                                   Seconds now) {
  const auto end_of = [&](std::size_t row) { return polls.jobs[row].polled + polls.waited[row]; };
  std::vector<std::size_t> over;
  for (const std::size_t row : rows)
    if (polls.jobs[row].polled < now && end_of(row) <= now) over.push_back(row);
  std::stable_sort(over.begin(), over.end(),
                   [&](std::size_t one, std::size_t other) { return end_of(one) < end_of(other); });
  return over;
}

double median_wait(std::vector<Seconds>& waits) {
  if (waits.empty()) return 0;
  const auto middle = waits.begin() + static_cast<std::ptrdiff_t>(waits.size() / 2);
  std::nth_element(waits.begin(), middle, waits.end());
  return static_cast<double>(*middle);
}

}  // namespace

WaitClass wait_class_of(const PolledJob& job) {
  const float limit = job.known[known_column("time_limit_sec")];
  if (limit <= static_cast<float>(4 * kHour)) return {job.partition, 0};
  return {job.partition, limit <= static_cast<float>(kDay) ? 1 : 2};
}

MedianWaits::MedianWaits(const Polls& polls, const std::vector<std::size_t>& rows, Seconds now) {
  std::vector<Seconds> all;
  std::map<WaitClass, std::vector<Seconds>> by_class;
  for (const std::size_t row : rows_over(polls, rows, now)) {
    all.push_back(polls.waited[row]);
    by_class[wait_class_of(polls.jobs[row])].push_back(polls.waited[row]);
  }
  of_all_ = median_wait(all);
  for (auto& [alike, waits] : by_class) of_class_[alike] = median_wait(waits);
}

double MedianWaits::of_class(const PolledJob& job) const {
  const auto found = of_class_.find(wait_class_of(job));
  return found == of_class_.end() ? of_all_ : found->second;
}

ClassHistories::ClassHistories(const Polls& polls, const std::vector<std::size_t>& rows,
                               Seconds now) {
  for (const std::size_t row : rows_over(polls, rows, now)) {
    of_all_.add(polls.waited[row]);
    of_class_[wait_class_of(polls.jobs[row])].add(polls.waited[row]);
  }
}

std::optional<WaitBound> ClassHistories::bound(const PolledJob& job) const {
  const auto found = of_class_.find(wait_class_of(job));
  if (found != of_class_.end())
    if (const auto own = found->second.bound()) return own;
  return of_all_.bound();
}

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

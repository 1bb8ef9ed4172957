#include "foresight/learned/wait_model.hpp"

#include <boost/json/parse.hpp>
#include <boost/json/serialize.hpp>
#include <boost/json/value_from.hpp>
#include <boost/json/value_to.hpp>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <limits>
#include <stdexcept>

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

constexpr std::size_t kFewestToJudge = 50;

std::string rounded(double value) {
  std::array<char, 32> text{};
  std::snprintf(text.data(), text.size(), "%.3f", value);
  return text.data();
}

}  // namespace

std::optional<std::string> what_speaks_against(const std::vector<double>& told,
                                               const std::vector<double>& medians,
                                               const std::vector<Seconds>& waited) {
  if (waited.size() < kFewestToJudge)
    return "only " + std::to_string(waited.size()) + " waits are there to judge the model by, of " +
           std::to_string(kFewestToJudge) + " that it takes";
  const bool are_waits = told.size() == waited.size() &&
                         std::all_of(told.begin(), told.end(),
                                     [](double wait) { return std::isfinite(wait) && wait >= 0; });
  if (!are_waits) return "the model tells what is no wait";
  const double ours = errors_of(told, waited).mean_square;
  const double theirs = errors_of(medians, waited).mean_square;
  if (ours < theirs) return std::nullopt;
  return "on the newest days, which it had not seen, the model's squared error of logarithms is " +
         rounded(ours) + " where medians have " + rounded(theirs);
}

namespace {

namespace json = boost::json;

constexpr std::int64_t kFormat = 1;
/// Nobody plans for longer.
constexpr double kFarthestWait = 400.0 * kDay;

}  // namespace

std::string to_bytes(const WaitModelFile& file) {
  const WaitModelFacts& facts = file.facts;
  const json::object head{{"format", kFormat},
                          {"estimator", facts.estimator},
                          {"config", facts.config_yaml},
                          {"features", json::value_from(queue_feature_names())},
                          {"partitions", json::value_from(facts.partitions)},
                          {"spread", json::value_from(facts.spread)},
                          {"waits", facts.waits},
                          {"from", facts.from},
                          {"until", facts.until},
                          {"half_life", facts.half_life},
                          {"mean_square", facts.mean_square},
                          {"mean_square_medians", facts.mean_square_medians},
                          {"bytes", file.model.size()}};
  return json::serialize(head) + "\n" + file.model;
}

WaitModelFile wait_model_file(std::string_view bytes) {
  const auto end = bytes.find('\n');
  if (end == std::string_view::npos)
    throw std::invalid_argument("it is no model of waits, or only the beginning of one");
  try {
    const json::value head = json::parse(bytes.substr(0, end));
    const json::object& object = head.as_object();
    if (object.at("format").as_int64() != kFormat ||
        json::value_to<std::vector<std::string>>(object.at("features")) != queue_feature_names())
      throw std::invalid_argument("it was made by another version of hpcbatch");
    WaitModelFile file;
    file.facts = {.estimator = json::value_to<std::string>(object.at("estimator")),
                  .config_yaml = json::value_to<std::string>(object.at("config")),
                  .partitions = json::value_to<std::vector<std::string>>(object.at("partitions")),
                  .spread = json::value_to<std::vector<double>>(object.at("spread")),
                  .waits = object.at("waits").to_number<std::size_t>(),
                  .from = object.at("from").to_number<Seconds>(),
                  .until = object.at("until").to_number<Seconds>(),
                  .half_life = object.at("half_life").to_number<Seconds>(),
                  .mean_square = object.at("mean_square").to_number<double>(),
                  .mean_square_medians = object.at("mean_square_medians").to_number<double>()};
    file.model = bytes.substr(end + 1);
    if (object.at("bytes").to_number<std::size_t>() != file.model.size())
      throw std::invalid_argument("a part of it is missing");
    if (file.facts.spread.empty() ||
        !std::is_sorted(file.facts.spread.begin(), file.facts.spread.end()))
      throw std::invalid_argument("it does not say how far it is off");
    return file;
  } catch (const std::invalid_argument&) {
    throw;
  } catch (const std::exception&) {
    throw std::invalid_argument("it is no model of waits");
  }
}

Result<std::vector<Seconds>> WaitModel::waits(const AskedJob& asked,
                                              const std::vector<PresentJob>& present,
                                              Seconds now) const {
  FeatureTable table{queue_feature_names(), queue_features(asked, present, now)};
  // One that it has never seen.
  if (asked.partition >= facts_.partitions.size())
    table.values.front() = std::numeric_limits<float>::quiet_NaN();
  const auto told = model_->predict(table);
  if (!told) return told.error();
  if (told->size() != 1 || !std::isfinite(told->front()) || told->front() < 0)
    return Error{Error::Kind::Rejected, "the model tells what is no wait"};
  std::vector<Seconds> waits;
  for (const double off : facts_.spread)
    waits.push_back(std::llround(
        std::clamp(wait_of_log(log_of_wait(told->front()) + off), 0.0, kFarthestWait)));
  return waits;
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

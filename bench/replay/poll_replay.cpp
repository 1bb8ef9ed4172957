#include "replay/poll_replay.hpp"

#include "cli/show/table.hpp"
#include "cli/show/values.hpp"
#include "replay/bounds.hpp"
#include "replay/poll_features.hpp"

#include <fmt/chrono.h>
#include <fmt/format.h>
#include <boost/json/array.hpp>

#include <algorithm>
#include <array>
#include <cmath>
#include <ctime>
#include <limits>
#include <numeric>
#include <optional>
#include <random>
#include <stdexcept>
#include <vector>

namespace hpcbatch::estimate {
namespace {

namespace json = boost::json;
using namespace foresight;

using Rows = std::vector<std::size_t>;

/// Of what a model learns; how a queue fares changes with its users.
constexpr Seconds kHalfLife = 10 * kDay;
constexpr Seconds kAllIsKnown = std::numeric_limits<Seconds>::max() / 2;
/// Bounds are told from so many blocks before the first that counts.
constexpr std::size_t kWarmUpBlocks = 3;

enum Who : std::size_t { kMedian, kClassMedian, kHistory, kLearned, kWhos };
constexpr std::array<const char*, kWhos> kNames = {"global median", "median by partition and limit",
                                                   "newest waits of the like", ""};

/// The rows of each poll, in order.
std::vector<Rows> days_of(const Polls& polls) {
  std::vector<Rows> days;
  for (std::size_t row = 0; row < polls.jobs.size(); ++row) {
    if (row == 0 || polls.jobs[row].polled != polls.jobs[row - 1].polled) days.emplace_back();
    days.back().push_back(row);
  }
  return days;
}

Rows joined(const std::vector<Rows>& days, const std::function<bool(std::size_t)>& wanted) {
  Rows rows;
  for (std::size_t day = 0; day < days.size(); ++day)
    if (wanted(day)) rows.insert(rows.end(), days[day].begin(), days[day].end());
  return rows;
}

/// What each told of some rows: seconds.
struct Told {
  Rows rows;
  std::array<std::vector<double>, kWhos> half, bound_50, bound_90;
  void append(const Told& other) {
    rows.insert(rows.end(), other.rows.begin(), other.rows.end());
    for (std::size_t who = 0; who < kWhos; ++who) {
      const auto add = [](std::vector<double>& to, const std::vector<double>& from) {
        to.insert(to.end(), from.begin(), from.end());
      };
      add(half[who], other.half[who]);
      add(bound_50[who], other.bound_50[who]);
      add(bound_90[who], other.bound_90[who]);
    }
  }
};

class Replay {
 public:
  Replay(const Polls& polls, const ReplayOptions& options, const Progress& progress)
      : polls_(polls),
        options_(options),
        progress_(progress),
        days_(days_of(polls)),
        all_(joined(days_, [](std::size_t) { return true; })),
        crowds_(crowds_of(polls)) {
    const std::size_t needed = options.first_day + options.block;
    if (days_.size() < needed || options.first_day < options.block)
      throw std::invalid_argument("the file has polls of " + std::to_string(days_.size()) +
                                  " moments; it takes " + std::to_string(needed) + " at least");
    if (options_.learner) table_ = feature_table(polls);
  }

  json::object all() {
    json::object found{{"jobs", polls_.jobs.size()},
                       {"polls", days_.size()},
                       {"from", polls_.jobs.front().polled},
                       {"until", polls_.jobs.back().polled},
                       {"estimator", nullptr}};
    if (options_.learner) found["estimator"] = options_.estimator;
    found["protocols"] = json::array{random_days(), past_to_next()};
    found["unused"] = std::move(unused_);
    return found;
  }

 private:
  json::object random_days();
  json::object past_to_next();

  Seconds moment(std::size_t day) const { return polls_.jobs[days_[day].front()].polled; }
  std::vector<Seconds> waits_of(const Rows& rows) const {
    std::vector<Seconds> waits;
    waits.reserve(rows.size());
    for (const std::size_t row : rows) waits.push_back(polls_.waited[row]);
    return waits;
  }
  std::vector<double> class_medians(const MedianWaits& medians, const Rows& rows) const {
    std::vector<double> told;
    for (const std::size_t row : rows) told.push_back(medians.of_class(polls_.jobs[row]));
    return told;
  }

  /// What a model that is trained on these rows tells of those; nothing where there is none.
  std::optional<std::vector<double>> learned(const Rows& from, const Rows& rows, Seconds now);
  /// The same, where the model is good enough on the days before.
  std::optional<std::vector<double>> learned_and_checked(std::size_t first, const Rows& rows);
  Told told_by_all(const Rows& from, const Rows& rows, Seconds now,
                   std::optional<std::vector<double>> by_model) const;
  void bound_day(Told& told, std::size_t day);
  json::array rows_of_table(const std::vector<Told>& parts, bool with_bounds) const;

  const Polls& polls_;
  const ReplayOptions& options_;
  const Progress& progress_;
  std::vector<Rows> days_;
  Rows all_;
  std::vector<std::size_t> crowds_;
  FeatureTable table_;
  json::array unused_;
  std::array<std::optional<ConformalBounds>, kWhos> by_half_, by_most_;
};

std::optional<std::vector<double>> Replay::learned(const Rows& from, const Rows& rows,
                                                   Seconds now) {
  if (!options_.learner || rows.empty()) return std::nullopt;
  const auto model = options_.learner(training_table(
      table_, polls_, from, now, now == kAllIsKnown ? std::nullopt : std::optional(kHalfLife)));
  if (!model) {
    unused_.emplace_back(model.error().text);
    return std::nullopt;
  }
  auto told = (*model)->predict(foresight::rows_of(table_, rows));
  if (told) return std::move(*told);
  unused_.emplace_back(told.error().text);
  return std::nullopt;
}

std::optional<std::vector<double>> Replay::learned_and_checked(std::size_t first,
                                                               const Rows& rows) {
  if (!options_.learner) return std::nullopt;
  const Seconds now = moment(first), before = moment(first - options_.block);
  Rows judged;
  for (const std::size_t row :
       joined(days_, [&](std::size_t day) { return day < first && day + options_.block >= first; }))
    if (polls_.jobs[row].polled + polls_.waited[row] <= now) judged.push_back(row);
  const auto told = learned(all_, judged, before);
  if (!told) return std::nullopt;
  const MedianWaits medians(polls_, all_, before);
  if (const auto why =
          what_speaks_against(*told, class_medians(medians, judged), waits_of(judged))) {
    unused_.emplace_back(*why);
    return std::nullopt;
  }
  return learned(all_, rows, now);
}

Told Replay::told_by_all(const Rows& from, const Rows& rows, Seconds now,
                         std::optional<std::vector<double>> by_model) const {
  const MedianWaits medians(polls_, from, now);
  Told told;
  told.rows = rows;
  told.half[kMedian].assign(rows.size(), medians.of_all());
  told.half[kClassMedian] = class_medians(medians, rows);
  told.half[kLearned] = by_model ? std::move(*by_model) : told.half[kClassMedian];
  // Histories go on from poll to poll; they know nothing of what comes after.
  std::optional<ClassHistories> histories;
  Seconds of_moment = -1;
  for (const std::size_t row : rows) {
    const PolledJob& job = polls_.jobs[row];
    if (job.polled != of_moment) histories.emplace(polls_, from, job.polled);
    of_moment = job.polled;
    const auto bound = histories->bound(job);
    told.half[kHistory].push_back(bound ? static_cast<double>(bound->half) : medians.of_all());
  }
  return told;
}

json::object Replay::random_days() {
  std::vector<Told> parts;
  const auto count = static_cast<std::size_t>(std::ceil(static_cast<double>(days_.size()) / 10));
  for (std::size_t split = 0; split < options_.splits; ++split) {
    progress_("random days", split, options_.splits);
    std::vector<std::size_t> order(days_.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    std::mt19937 random(static_cast<std::uint32_t>(split + 1));
    std::shuffle(order.begin(), order.end(), random);
    std::vector<bool> is_drawn(days_.size(), false);
    for (std::size_t at = 0; at < count; ++at) is_drawn[order[at]] = true;
    const Rows from = joined(days_, [&](std::size_t day) { return !is_drawn[day]; });
    const Rows rows = joined(days_, [&](std::size_t day) { return is_drawn[day]; });
    parts.push_back(told_by_all(from, rows, kAllIsKnown, learned(from, rows, kAllIsKnown)));
  }
  progress_("random days", options_.splits, options_.splits);
  return {{"name", "random"}, {"rows", rows_of_table(parts, false)}};
}

/// Adds the bounds of one day's rows, from what is known at its poll.
void Replay::bound_day(Told& told, std::size_t day) {
  const Seconds now = moment(day);
  for (std::size_t who = 0; who < kWhos; ++who) {
    const auto half = by_half_[who]->at(now), most = by_most_[who]->at(now);
    for (std::size_t at = 0; at < told.rows.size(); ++at) {
      const std::size_t row = told.rows[at];
      if (polls_.jobs[row].polled != now) continue;
      const double predicted = log_of_wait(told.half[who][at]);
      ToldWait wait{now, spread_group(crowds_[row], predicted), predicted, 0, polls_.waited[row]};
      wait.bound = wait.predicted + (half ? half->of(wait.group) : 0);
      told.bound_50[who].push_back(std::max(0.0, wait_of_log(wait.bound)));
      by_half_[who]->add(wait);
      wait.bound = wait.predicted + (most ? most->of(wait.group) : 0);
      told.bound_90[who].push_back(std::max(0.0, wait_of_log(wait.bound)));
      by_most_[who]->add(wait);
    }
  }
}

json::object Replay::past_to_next() {
  for (std::size_t who = 0; who < kWhos; ++who) {
    by_half_[who].emplace(ConformalSettings{.level = 0.5});
    by_most_[who].emplace(ConformalSettings{.level = 0.9});
  }
  std::vector<Told> parts;
  const std::size_t warm_up = std::min(kWarmUpBlocks, options_.first_day / options_.block - 1);
  const std::size_t begin = options_.first_day - warm_up * options_.block;
  for (std::size_t first = begin; first < days_.size(); first += options_.block) {
    progress_("past to next days", first - begin, days_.size() - begin);
    const std::size_t last = std::min(first + options_.block, days_.size());
    const Rows rows = joined(days_, [&](std::size_t day) { return day >= first && day < last; });
    Told told = told_by_all(all_, rows, moment(first), learned_and_checked(first, rows));
    for (std::size_t day = first; day < last; ++day) bound_day(told, day);
    if (first >= options_.first_day) parts.push_back(std::move(told));
  }
  progress_("past to next days", 1, 1);
  return {{"name", "time"}, {"rows", rows_of_table(parts, true)}};
}

json::array Replay::rows_of_table(const std::vector<Told>& parts, bool with_bounds) const {
  Told whole;
  for (const Told& part : parts) whole.append(part);
  const std::vector<Seconds> waited = waits_of(whole.rows);
  json::array table;
  for (std::size_t who = 0; who < kWhos; ++who) {
    if (who == kLearned && !options_.learner) continue;
    const WaitErrors errors = errors_of(whole.half[who], waited);
    json::object row{{"who", who == kLearned ? options_.estimator : kNames[who]},
                     {"jobs", errors.count},
                     {"mean_square", errors.mean_square},
                     {"within_2", errors.within_2},
                     {"within_3", errors.within_3},
                     {"median_error_h", errors.median / kHour}};
    if (with_bounds) {
      json::array held_50, held_90;
      for (const Told& part : parts) {
        held_50.emplace_back(part_held(part.bound_50[who], waits_of(part.rows)));
        held_90.emplace_back(part_held(part.bound_90[who], waits_of(part.rows)));
      }
      std::vector<double> bounds = whole.bound_90[who];
      std::nth_element(bounds.begin(),
                       bounds.begin() + static_cast<std::ptrdiff_t>(bounds.size() / 2),
                       bounds.end());
      row["held_50"] = std::move(held_50);
      row["held_90"] = std::move(held_90);
      row["bound_90_h"] = bounds[bounds.size() / 2] / kHour;
    }
    table.push_back(std::move(row));
  }
  return table;
}

}  // namespace

json::object replay(const Polls& polls, const ReplayOptions& options, const Progress& progress) {
  return Replay(polls, options, progress).all();
}

}  // namespace hpcbatch::estimate

#include "replay/poll_features.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <string>
#include <unordered_map>
#include <utility>

namespace hpcbatch::foresight {
namespace {

constexpr Seconds kRecent = 3 * kDay;

/// Jobs that are alike in some way, by a number.
using Likeness = std::uint64_t;
enum LikenessLevel : std::size_t { kAll, kPartition, kAccount, kBoth, kShape, kLevels };
constexpr std::array<const char*, kLevels> kLevelNames = {"all", "p", "a", "pa", "shape"};

Likeness mixed(Likeness one, Likeness other) {
  return (one ^ (other + 0x9e3779b97f4a7c15U + (one << 6U) + (one >> 2U))) * 0xff51afd7ed558ccdU;
}
Likeness bits_of(float value) {
  return static_cast<Likeness>(std::llround(std::isnan(value) ? -1.0 : static_cast<double>(value)));
}

std::array<Likeness, kLevels> likenesses_of(const PolledJob& job) {
  const Likeness both = mixed(job.partition + 1, job.account);
  const Likeness shape = mixed(mixed(both, bits_of(job.known[known_column("req_cpus")])),
                               bits_of(job.known[known_column("time_limit_sec")]));
  return {0, job.partition, job.account, both, shape};
}

float median_of(std::vector<float>& values) {
  if (values.empty()) return kNotSaid;
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  if (values.size() % 2 == 1) return *middle;
  return (*middle + *std::max_element(values.begin(), middle)) / 2;
}

/// What has become of jobs of earlier polls that are alike.
struct Past {
  std::vector<float> started;  ///< logarithms of waits that ended not long ago
  std::vector<float> pending;  ///< seconds waited so far
};
struct PastFigures {
  float started{0}, median{kNotSaid}, pending{0}, pending_median{kNotSaid};
};

/// The past and the crowd of one poll.
class PollSurroundings {
 public:
  /// Of the rows [first, last) that were polled at once.
  PollSurroundings(const Polls& polls, std::size_t first, std::size_t last) {
    const Seconds now = polls.jobs[first].polled;
    for (std::size_t row = 0; row < first; ++row) note_past(polls, row, now);
    for (std::size_t level = 0; level < kLevels; ++level) {
      for (auto& [likeness, past] : past_[level]) figures_[level][likeness] = figures_of(past);
      past_[level].clear();
    }
    for (std::size_t row = first; row < last; ++row) {
      const auto alike = likenesses_of(polls.jobs[row]);
      for (std::size_t level = 0; level < kLevels; ++level) ++crowd_[level][alike[level]];
    }
  }

  void append(const PolledJob& job, std::vector<float>& row) const {
    const auto alike = likenesses_of(job);
    for (std::size_t level = 0; level < kLevels; ++level) {
      const auto crowd = crowd_[level].find(alike[level]);
      row.push_back(crowd == crowd_[level].end() ? 0 : static_cast<float>(crowd->second));
      const auto found = figures_[level].find(alike[level]);
      const PastFigures past = found == figures_[level].end() ? PastFigures{} : found->second;
      row.insert(row.end(), {past.started, past.median, past.pending, past.pending_median});
    }
  }

 private:
  /// Nothing of a wait is looked at but whether it was over by `now`, and if it was, how long.
  void note_past(const Polls& polls, std::size_t row, Seconds now) {
    const PolledJob& job = polls.jobs[row];
    const Seconds start = job.polled + polls.waited[row];
    const bool is_over = start <= now;
    if (is_over && start <= now - kRecent) return;
    const auto alike = likenesses_of(job);
    for (std::size_t level = 0; level < kLevels; ++level) {
      Past& past = past_[level][alike[level]];
      if (is_over) {
        past.started.push_back(std::log10(static_cast<float>(polls.waited[row]) + 1));
      } else {
        past.pending.push_back(static_cast<float>(now - job.polled));
      }
    }
  }
  static PastFigures figures_of(Past& past) {
    return {static_cast<float>(past.started.size()), median_of(past.started),
            static_cast<float>(past.pending.size()), median_of(past.pending)};
  }

  template <class Value>
  using ByLikeness = std::array<std::unordered_map<Likeness, Value>, kLevels>;
  ByLikeness<Past> past_;
  ByLikeness<PastFigures> figures_;
  ByLikeness<std::size_t> crowd_;
};

std::vector<std::string> names() {
  std::vector<std::string> all(kKnownColumns.begin(), kKnownColumns.end());
  for (const char* own : {"age", "eligible_age", "weekday", "nodes", "gpus", "billing", "cpu_hours",
                          "mem_of_cpu", "p_cores_load", "cores_load", "p_hours_load", "hours_load",
                          "p_hours_left", "p_gpu_hours_load"})
    all.emplace_back(own);
  for (const std::string level : kLevelNames)
    for (const char* what : {"crowd_", "started_", "median_", "pending_", "pending_median_"})
      all.push_back(what + level);
  return all;
}

/// Ratios are what trees cannot make themselves.
void append_own(const PolledJob& job, std::vector<float>& row) {
  row.insert(row.end(), job.known.begin(), job.known.end());
  const auto known = [&](std::size_t at) { return job.known[at]; };
  const auto load = [&](std::size_t waits, std::size_t runs) {
    return known(waits) / (known(runs) + 1);
  };
  const float cpus = known(known_column("req_cpus"));
  const float limit = known(known_column("time_limit_sec"));
  const auto day = job.polled / kDay;
  row.insert(row.end(),
             {static_cast<float>(job.polled - job.submitted),
              static_cast<float>(job.polled - job.eligible), static_cast<float>((day % 7 + 7) % 7),
              job.nodes, job.gpus, job.billing, cpus * limit / static_cast<float>(kHour),
              known(known_column("req_mem_total")) / std::max(cpus, 1.0F),
              load(known_column("q_p_cores_above"), known_column("r_p_cores_above")),
              load(known_column("q_cores_above"), known_column("r_cores_above")),
              load(known_column("q_p_core_hours_above"), known_column("r_p_cores_above")),
              load(known_column("q_core_hours_above"), known_column("r_cores_above")),
              load(known_column("r_p_core_hours_above"), known_column("r_p_cores_above")),
              load(known_column("q_p_gpu_hours_above"), known_column("r_p_gpus_above"))});
}

}  // namespace

FeatureTable feature_table(const Polls& polls) {
  FeatureTable table;
  table.features = names();
  table.values.reserve(polls.jobs.size() * table.features.size());
  for (std::size_t first = 0, last = 0; first < polls.jobs.size(); first = last) {
    while (last < polls.jobs.size() && polls.jobs[last].polled == polls.jobs[first].polled) ++last;
    const PollSurroundings surroundings(polls, first, last);
    for (std::size_t row = first; row < last; ++row) {
      append_own(polls.jobs[row], table.values);
      surroundings.append(polls.jobs[row], table.values);
    }
  }
  // A sum or ratio that no float holds says nothing.
  for (float& value : table.values)
    if (std::isinf(value)) value = kNotSaid;
  return table;
}

std::vector<std::size_t> crowds_of(const Polls& polls) {
  std::map<std::pair<Seconds, Likeness>, std::size_t> counts;
  const auto key = [&](std::size_t row) {
    return std::pair(polls.jobs[row].polled, likenesses_of(polls.jobs[row])[kShape]);
  };
  for (std::size_t row = 0; row < polls.jobs.size(); ++row) ++counts[key(row)];
  std::vector<std::size_t> crowds;
  for (std::size_t row = 0; row < polls.jobs.size(); ++row) crowds.push_back(counts[key(row)]);
  return crowds;
}

FeatureTable rows_of(const FeatureTable& table, const std::vector<std::size_t>& rows) {
  FeatureTable chosen{table.features, {}};
  const std::size_t columns = table.features.size();
  chosen.values.reserve(rows.size() * columns);
  for (const std::size_t row : rows) {
    const auto begin = table.values.begin() + static_cast<std::ptrdiff_t>(row * columns);
    chosen.values.insert(chosen.values.end(), begin, begin + static_cast<std::ptrdiff_t>(columns));
  }
  return chosen;
}

TrainingTable training_table(const FeatureTable& table, const Polls& polls,
                             const std::vector<std::size_t>& rows, Seconds now,
                             std::optional<Seconds> half_life) {
  std::vector<std::size_t> before;
  for (const std::size_t row : rows)
    if (polls.jobs[row].polled < now) before.push_back(row);
  TrainingTable training;
  training.inputs = rows_of(table, before);
  for (const std::size_t row : before) {
    const Seconds so_far = now - polls.jobs[row].polled;
    const bool is_pending = polls.waited[row] > so_far;
    training.waited.push_back(static_cast<double>(is_pending ? so_far : polls.waited[row]));
    training.is_pending.push_back(is_pending ? 1 : 0);
    if (half_life) {
      const double lives = static_cast<double>(so_far) / static_cast<double>(*half_life);
      training.weights.push_back(static_cast<float>(std::pow(0.5, lives)));
    }
  }
  return training;
}

}  // namespace hpcbatch::foresight

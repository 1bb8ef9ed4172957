#include "foresight/learned/features.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
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

namespace {

/// Waits of those that began so long ago say how it is now.
constexpr Seconds kJustNow = 6 * kHour, kLately = kDay;

constexpr float kNobody = std::numeric_limits<float>::quiet_NaN();

double hours(Seconds time) {
  return static_cast<double>(time) / static_cast<double>(kHour);
}

/// Whatever somebody has asked for: an input is finite.
float as_input(double value) {
  constexpr double kMost = 1e30;
  return static_cast<float>(std::clamp(value, -kMost, kMost));
}

/// Sums over those that wait or run in some part of the cluster.
struct Load {
  double waiting{0}, waiting_cpus{0}, waiting_hours{0}, waiting_gpus{0};
  double running{0}, running_cpus{0}, running_hours{0}, running_gpus{0};

  void add(const PresentJob& job, Seconds now) {
    if (job.started) {
      const Seconds left = std::max<Seconds>(job.limit - (now - *job.started), 0);
      running += 1;
      running_cpus += job.cpus;
      running_gpus += job.gpus;
      running_hours += job.cpus * hours(left);
    } else {
      waiting += 1;
      waiting_cpus += job.cpus;
      waiting_gpus += job.gpus;
      waiting_hours += job.cpus * hours(job.limit);
    }
  }
  void append_to(std::vector<float>& row) const {
    for (const double value : {waiting, waiting_cpus, waiting_hours, waiting_gpus, running,
                               running_cpus, running_hours, running_gpus})
      row.push_back(as_input(value));
  }
};

bool is_within_twice(double one, double other) {
  return one <= 2 * other && other <= 2 * one;
}

float median_hours(std::vector<Seconds>& waits) {
  if (waits.empty()) return kNobody;
  const auto middle = waits.begin() + static_cast<std::ptrdiff_t>(waits.size() / 2);
  std::nth_element(waits.begin(), middle, waits.end());
  return static_cast<float>(hours(*middle));
}

/// How long those waited that run, and those have waited that still do.
struct Waits {
  std::vector<Seconds> began;
  double waiting{0};
  Seconds oldest{0};

  void add(const PresentJob& job, Seconds now, Seconds recent) {
    if (!job.started) waiting += 1;
    if (!job.submitted) return;
    if (!job.started)
      oldest = std::max(oldest, now - *job.submitted);
    else if (now - *job.started <= recent)
      began.push_back(std::max<Seconds>(*job.started - *job.submitted, 0));
  }
  void append_to(std::vector<float>& row) {
    row.insert(row.end(), {static_cast<float>(waiting), static_cast<float>(hours(oldest)),
                           static_cast<float>(began.size()), median_hours(began)});
  }
};

}  // namespace

Numbers::Numbers(const std::vector<std::string>& names) {
  for (const std::string& name : names) of(name);
}

std::uint32_t Numbers::of(const std::string& name) {
  return known_.try_emplace(name, static_cast<std::uint32_t>(known_.size())).first->second;
}

std::vector<std::string> Numbers::names() const {
  std::vector<std::string> names(known_.size());
  for (const auto& [name, number] : known_) names[number] = name;
  return names;
}

std::vector<std::string> queue_feature_names() {
  std::vector<std::string> names = {"partition", "cpus", "gpus",   "limit_hours",
                                    "cpu_hours", "hour", "weekday"};
  for (const std::string part : {"partition", "cluster", "user"})
    for (const char* what : {"_waiting", "_waiting_cpus", "_waiting_hours", "_waiting_gpus",
                             "_running", "_running_cpus", "_running_hours", "_running_gpus"})
      names.push_back(part + what);
  for (const std::string part : {"near", "alike"})
    for (const char* what : {"_waiting", "_oldest", "_began", "_median"})
      names.push_back(part + what);
  return names;
}

std::vector<float> queue_features(const AskedJob& asked, const std::vector<PresentJob>& present,
                                  Seconds now) {
  Load here, all, own;
  Waits near, alike;
  for (const PresentJob& job : present) {
    all.add(job, now);
    if (job.user == asked.user) own.add(job, now);
    if (job.partition != asked.partition) continue;
    here.add(job, now);
    near.add(job, now, kJustNow);
    if (is_within_twice(job.cpus, asked.cpus) &&
        is_within_twice(static_cast<double>(job.limit), static_cast<double>(asked.limit)))
      alike.add(job, now, kLately);
  }
  const Seconds hour = now / kHour % 24, of_week = now / kDay % 7;
  std::vector<float> row = {static_cast<float>(asked.partition),
                            as_input(asked.cpus),
                            as_input(asked.gpus),
                            as_input(hours(asked.limit)),
                            as_input(asked.cpus * hours(asked.limit)),
                            static_cast<float>(hour),
                            static_cast<float>(of_week)};
  for (const Load* load : {&here, &all, &own}) load->append_to(row);
  near.append_to(row);
  alike.append_to(row);
  return row;
}

std::vector<PresentJob> present_in(const WatchedQueue& queue, const WatchedRoom& room,
                                   Numbers& partitions, Numbers& users, Seconds now) {
  std::vector<PresentJob> present;
  for (const WatchedJob& seen : queue.jobs) {
    if (seen.partitions.empty() || (!seen.runs && !seen.may_start && !seen.at_limit)) continue;
    PresentJob job{.partition = partitions.of(seen.partitions.front()),
                   .user = users.of(seen.user),
                   .cpus = seen.cpus,
                   .limit = seen.limit.count()};
    if (const auto its = room.jobs.find(seen.number); its != room.jobs.end())
      for (const auto& [kind, count] : its->second.gpus) job.gpus += count;
    if (seen.age.count() >= 0) job.submitted = now - seen.age.count();
    if (seen.runs) job.started = now - seen.elapsed.count();
    present.push_back(job);
  }
  return present;
}

}  // namespace hpcbatch::foresight

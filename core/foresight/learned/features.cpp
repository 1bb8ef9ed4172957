#include "foresight/learned/features.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <string>
#include <utility>

namespace hpcbatch::foresight {
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

#include "foresight/learned/features.hpp"

#include <hpcbatch/text.hpp>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <stdexcept>
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

/// One that came at `came` and whose fate is told later.
struct Fate {
  PresentJob job;
  Seconds came{0};
  std::optional<Seconds> started, ended;
};

std::vector<Fate> fates_of(const std::vector<PastJob>& jobs, Numbers& partitions, Seconds now) {
  const auto known = [now](const std::optional<std::chrono::seconds>& moment) {
    return moment && moment->count() <= now ? std::optional(moment->count()) : std::nullopt;
  };
  Numbers users;
  std::vector<Fate> fates;
  for (const PastJob& job : jobs) {
    const Seconds came = std::max(job.submitted, job.eligible).count();
    if (came > now) continue;
    // Since its submit, as a look tells it.
    Fate fate{{partitions.of(job.partition),
               users.of(job.user),
               job.cpus,
               job.gpus,
               job.limit.count(),
               job.submitted.count(),
               {}},
              came,
              known(job.started),
              known(job.ended)};
    // What did not begin after it could is no wait.
    if (fate.started && *fate.started < came) continue;
    fates.push_back(fate);
  }
  std::stable_sort(fates.begin(), fates.end(),
                   [](const Fate& one, const Fate& other) { return one.came < other.came; });
  return fates;
}

int limit_class(Seconds limit) {
  return static_cast<int>(std::lround(std::log2(static_cast<double>(limit + kMinute)) / 2));
}

PastWait wait_of(const Fate& fate, Seconds now) {
  const Seconds until = fate.started.value_or(fate.ended.value_or(now));
  return {.asked = fate.came,
          .waited = std::max<Seconds>(until - fate.came, 0),
          .has_started = fate.started.has_value(),
          .alike = {fate.job.partition, limit_class(fate.job.limit)}};
}

/// Those that wait or run at `now`, as far as they had come by then.
std::vector<PresentJob> present_at(std::vector<const Fate*>& active, Seconds now) {
  std::erase_if(active, [now](const Fate* fate) { return fate->ended && *fate->ended <= now; });
  std::vector<PresentJob> present;
  present.reserve(active.size());
  for (const Fate* fate : active) {
    present.push_back(fate->job);
    if (fate->started && *fate->started <= now) present.back().started = fate->started;
  }
  return present;
}

constexpr std::size_t kFields = 9;

std::string word(std::string text) {
  std::replace_if(
      text.begin(), text.end(), [](char c) { return c == '\t' || c == '\n'; }, '?');
  return text;
}

std::string moment(const std::optional<std::chrono::seconds>& moment) {
  return moment ? std::to_string(moment->count()) : "-";
}

template <class Number>
Number number_of(std::string_view text) {
  const auto value = number_in<Number>(text);
  if (!value)
    throw std::invalid_argument("a line is no batch job: '" + std::string(text) + "' is no number");
  return *value;
}

std::optional<std::chrono::seconds> moment_of(std::string_view text) {
  if (text == "-") return std::nullopt;
  return std::chrono::seconds{number_of<std::int64_t>(text)};
}

std::vector<std::string_view> fields_of(std::string_view line) {
  std::vector<std::string_view> fields;
  for (;;) {
    const auto end = std::min(line.find('\t'), line.size());
    fields.push_back(line.substr(0, end));
    if (end == line.size()) return fields;
    line.remove_prefix(end + 1);
  }
}

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

PastLesson past_lesson(const std::vector<PastJob>& jobs, Seconds since, Seconds now,
                       std::size_t most) {
  PastLesson lesson;
  lesson.inputs.features = queue_feature_names();
  Numbers partitions;
  const std::vector<Fate> fates = fates_of(jobs, partitions, now);
  lesson.partitions = partitions.names();
  const auto first = std::find_if(fates.begin(), fates.end(),
                                  [since](const Fate& fate) { return fate.came >= since; });
  const auto begin = static_cast<std::size_t>(first - fates.begin());
  const std::size_t every =
      std::max<std::size_t>((fates.size() - begin + most - 1) / std::max<std::size_t>(most, 1), 1);
  std::vector<const Fate*> active;
  for (std::size_t at = 0; at < fates.size(); ++at) {
    const Fate& fate = fates[at];
    if (at >= begin && (at - begin) % every == 0) {
      const PresentJob& job = fate.job;
      const auto row = queue_features({job.partition, job.user, job.cpus, job.gpus, job.limit},
                                      present_at(active, fate.came), fate.came);
      lesson.inputs.values.insert(lesson.inputs.values.end(), row.begin(), row.end());
      lesson.waits.push_back(wait_of(fate, now));
    }
    active.push_back(&fate);
  }
  return lesson;
}

TrainingTable known_by(const PastLesson& lesson, Seconds now, Seconds half_life) {
  TrainingTable table;
  table.inputs.features = lesson.inputs.features;
  const std::size_t width = lesson.inputs.features.size();
  for (std::size_t row = 0; row < lesson.waits.size(); ++row) {
    const PastWait& wait = lesson.waits[row];
    const Seconds age = now - wait.asked;
    if (age <= 0) break;
    const auto first = lesson.inputs.values.begin() + static_cast<std::ptrdiff_t>(row * width);
    table.inputs.values.insert(table.inputs.values.end(), first,
                               first + static_cast<std::ptrdiff_t>(width));
    table.waited.push_back(static_cast<double>(std::min(wait.waited, age)));
    table.is_pending.push_back(wait.has_started && wait.waited <= age ? 0 : 1);
    table.weights.push_back(
        static_cast<float>(std::exp2(-static_cast<double>(age) / static_cast<double>(half_life))));
  }
  return table;
}

std::string past_text(const std::vector<PastJob>& jobs) {
  std::string text;
  for (const PastJob& job : jobs) {
    text += word(job.partition) + '\t' + word(job.user) + '\t' + std::to_string(job.cpus) + '\t' +
            std::to_string(job.gpus) + '\t' + std::to_string(job.limit.count()) + '\t' +
            std::to_string(job.submitted.count()) + '\t' + std::to_string(job.eligible.count()) +
            '\t' + moment(job.started) + '\t' + moment(job.ended) + '\n';
  }
  return text;
}

std::vector<PastJob> past_jobs(std::string_view text) {
  std::vector<PastJob> jobs;
  while (!text.empty()) {
    const auto end = text.find('\n');
    const auto fields = fields_of(text.substr(0, end));
    if (end == std::string_view::npos || fields.size() != kFields)
      throw std::invalid_argument("a line is no batch job: it has " +
                                  std::to_string(fields.size()) + " fields, not 9");
    jobs.push_back({.partition = std::string(fields[0]),
                    .user = std::string(fields[1]),
                    .cpus = number_of<double>(fields[2]),
                    .gpus = number_of<double>(fields[3]),
                    .limit = std::chrono::seconds{number_of<std::int64_t>(fields[4])},
                    .submitted = std::chrono::seconds{number_of<std::int64_t>(fields[5])},
                    .eligible = std::chrono::seconds{number_of<std::int64_t>(fields[6])},
                    .started = moment_of(fields[7]),
                    .ended = moment_of(fields[8])});
    text.remove_prefix(end + 1);
  }
  return jobs;
}

}  // namespace hpcbatch::foresight

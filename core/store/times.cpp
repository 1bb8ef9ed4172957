#include "store/times.hpp"

#include "store/history.hpp"
#include "store/result_run.hpp"

#include <algorithm>
#include <utility>

namespace hpcbatch::store {
namespace {

// So many tasks are looked at: more would keep commits waiting.
constexpr std::uint64_t kMostLookedAt = 200'000;

/// Neither is before 1970.
Duration between(Time from, Time to) {
  return to <= from ? Duration{} : to - from;
}

Duration plus(Duration sum, Duration more) {
  return sum > Duration::max() - more ? Duration::max() : sum + more;
}

Duration scaled(Duration sum, double factor) {
  const double scaled = static_cast<double>(sum.count()) * factor;
  return scaled >= static_cast<double>(Duration::max().count())
             ? Duration::max()
             : Duration{static_cast<Duration::rep>(scaled)};
}

/// The value that so many tenths of them do not exceed.
Duration within(std::vector<Duration>& values, std::size_t tenths) {
  const std::size_t place = (values.size() * tenths + 9) / 10 - 1;
  const auto at = values.begin() + static_cast<std::ptrdiff_t>(place);
  std::nth_element(values.begin(), at, values.end());
  return *at;
}

Duration busy_of(std::vector<std::pair<Time, Time>>& runs) {
  std::sort(runs.begin(), runs.end());
  Duration busy{};
  Time until{};
  for (const auto& [started, ended] : runs) {
    busy = plus(busy, between(std::max(started, until), ended));
    until = std::max(until, ended);
  }
  return busy;
}

}  // namespace

void TimesOfTasks::add(TaskId task, Time started, Time ended, Duration cpu) {
  const Time begin = std::max(started, Time{});
  const Duration ran = between(begin, ended);
  runs_.emplace_back(begin, begin + ran);
  times_.ran = plus(times_.ran, ran);
  times_.cpu = plus(times_.cpu, std::max(Duration{}, cpu));
  if (!times_.longest || ran > times_.longest_ran) {
    times_.longest = task;
    times_.longest_ran = ran;
  }
}

TaskTimes TimesOfTasks::all(std::uint64_t tasks) && {
  if (runs_.empty()) return times_;
  times_.busy = busy_of(runs_);
  std::vector<Duration> each;
  each.reserve(runs_.size());
  for (const auto& [started, ended] : runs_) each.push_back(ended - started);
  times_.half_within = within(each, 5);
  times_.most_within = within(each, 9);
  each.clear();
  for (const auto& [started, ended] : runs_)
    each.push_back(between(std::max(submitted_, Time{}), started));
  times_.half_waited = within(each, 5);
  times_.tasks = tasks;
  if (tasks <= runs_.size()) return times_;
  const double factor = static_cast<double>(tasks) / static_cast<double>(runs_.size());
  times_.ran = scaled(times_.ran, factor);
  times_.cpu = scaled(times_.cpu, factor);
  times_.longest.reset();
  times_.is_estimate = true;
  return times_;
}

TaskTimes History::times(const ArrayRow& array) {
  std::uint64_t tasks = 0;
  {
    sqlite::Statement count =
        db_.query("SELECT sum(last-first+1) FROM results WHERE array=? AND started<>0");
    if (count.bind(array.id.value).step()) tasks = static_cast<std::uint64_t>(count.number(0));
  }
  const std::uint64_t each = tasks == 0 ? 1 : 1 + (tasks - 1) / kMostLookedAt;
  TimesOfTasks sums(array.submitted);
  {
    sqlite::Statement rows = db_.query(
        "SELECT first,started,ended,cpu,details FROM results WHERE array=? AND started<>0");
    rows.bind(array.id.value);
    for (std::uint64_t seen = 0; rows.step(); ++seen) {
      if (seen % each != 0) continue;
      const auto first = static_cast<std::uint32_t>(rows.number(0));
      if (rows.bytes(4).empty()) {
        sums.add({array.id, first}, from_microseconds(rows.number(1)),
                 from_microseconds(rows.number(2)), Duration{rows.number(3)});
        continue;
      }
      const std::vector<OwnTimes> own = decode_times(rows.bytes(4));
      for (std::size_t i = 0; i < own.size(); ++i)
        sums.add({array.id, first + static_cast<std::uint32_t>(i)}, own[i].started, own[i].ended,
                 own[i].cpu);
    }
  }
  TaskTimes all = std::move(sums).all(tasks);
  sqlite::Statement earlier = db_.query(
      "SELECT count(*),total(max(0,ended-started)) FROM attempts WHERE array=? AND started<>0");
  if (earlier.bind(array.id.value).step()) {
    all.earlier_attempts = static_cast<std::uint64_t>(earlier.number(0));
    all.earlier_ran = Duration{earlier.number(1)};
  }
  return all;
}

}  // namespace hpcbatch::store

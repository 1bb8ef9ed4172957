#include "store/times.hpp"

#include "store/history.hpp"
#include "store/result_run.hpp"

#include <algorithm>
#include <limits>

namespace hpcbatch::store {
namespace {

// So many tasks are looked at one by one: more would keep commits waiting.
constexpr std::uint64_t kMostLookedAt = 1'000'000;

/// A clock may say anything.
Duration between(Time from, Time to) {
  return to <= from ? Duration{} : to - from;
}

Duration plus(Duration sum, Duration more) {
  return sum > Duration::max() - more ? Duration::max() : sum + more;
}

Duration times(Duration sum, std::uint64_t count) {
  const auto factor = static_cast<std::int64_t>(count);
  return sum > Duration::max() / factor ? Duration::max() : sum * factor;
}

/// The value that so many tenths of them do not exceed.
Duration within(std::vector<Duration>& values, std::size_t tenths) {
  const std::size_t place = (values.size() * tenths + 9) / 10 - 1;
  const auto at = values.begin() + static_cast<std::ptrdiff_t>(place);
  std::nth_element(values.begin(), at, values.end());
  return *at;
}

/// Of so many parts of the whole time those in which something ran: what is as long as one of them is
/// rounded up to it.
constexpr std::size_t kParts = 4096;

Duration busy_of(const std::vector<Time>& started, const std::vector<Duration>& ran) {
  const Time begin = *std::min_element(started.begin(), started.end());
  const auto after = [&](std::size_t i) { return started[i] - begin; };
  Duration whole{};
  for (std::size_t i = 0; i < ran.size(); ++i) whole = std::max(whole, plus(after(i), ran[i]));
  const Duration part = whole / static_cast<std::int64_t>(kParts) + Duration{1};
  std::vector<std::int64_t> changes(kParts + 2);
  for (std::size_t i = 0; i < ran.size(); ++i) {
    ++changes[static_cast<std::size_t>(after(i) / part)];
    --changes[static_cast<std::size_t>(plus(after(i), ran[i]) / part) + 1];
  }
  std::int64_t running = 0;
  std::uint64_t busy = 0;
  for (std::size_t i = 0; i < kParts + 1; ++i) {
    running += changes[i];
    if (running > 0) ++busy;
  }
  return busy == 0 ? Duration{} : std::min(whole, times(part, busy));
}

}  // namespace

void TimesOfTasks::add(TaskId task, Time started, Time ended, Duration cpu) {
  const Duration ran = between(started, ended);
  ran_.push_back(ran);
  started_.push_back(std::max(started, Time{}));
  waited_.push_back(between(submitted_, started));
  times_.ran = plus(times_.ran, ran);
  times_.cpu = plus(times_.cpu, std::max(Duration{}, cpu));
  if (!times_.longest || ran > times_.longest_ran) {
    times_.longest = task;
    times_.longest_ran = ran;
  }
}

TaskTimes TimesOfTasks::all() && {
  if (ran_.empty()) return times_;
  times_.tasks = ran_.size() * each_;
  times_.busy = busy_of(started_, ran_);
  times_.half_within = within(ran_, 5);
  times_.most_within = within(ran_, 9);
  times_.half_waited = within(waited_, 5);
  if (each_ > 1) {
    times_.ran = times(times_.ran, each_);
    times_.cpu = times(times_.cpu, each_);
    times_.longest.reset();
    times_.is_estimate = true;
  }
  return times_;
}

TaskTimes History::times(const ArrayRow& array) {
  const std::uint64_t each = 1 + array.indices.size() / kMostLookedAt;
  TimesOfTasks sums(array.submitted, each);
  {
    sqlite::Statement rows = db_.query(
        "SELECT first,started,ended,cpu,details FROM results WHERE array=? AND started<>0");
    rows.bind(array.id.value);
    std::uint64_t seen = 0;
    const auto is_looked_at = [&] { return seen++ % each == 0; };
    while (rows.step()) {
      const auto first = static_cast<std::uint32_t>(rows.number(0));
      if (rows.bytes(4).empty()) {
        if (is_looked_at())
          sums.add({array.id, first}, from_microseconds(rows.number(1)),
                   from_microseconds(rows.number(2)), Duration{rows.number(3)});
        continue;
      }
      const std::vector<OwnTimes> own = decode_times(rows.bytes(4));
      for (std::size_t i = 0; i < own.size(); ++i) {
        if (is_looked_at())
          sums.add({array.id, first + static_cast<std::uint32_t>(i)}, own[i].started, own[i].ended,
                   own[i].cpu);
      }
    }
  }
  TaskTimes all = std::move(sums).all();
  sqlite::Statement earlier = db_.query(
      "SELECT count(*),total(max(0,ended-started)) FROM attempts WHERE array=? AND started<>0");
  if (earlier.bind(array.id.value).step()) {
    all.earlier_attempts = static_cast<std::uint64_t>(earlier.number(0));
    all.earlier_ran = Duration{earlier.number(1)};
  }
  return all;
}

}  // namespace hpcbatch::store

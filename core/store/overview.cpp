#include "store/overview.hpp"

#include "store/encoding.hpp"
#include "store/history.hpp"
#include "store/layout.hpp"
#include "store/result_run.hpp"
#include "store/store.hpp"

#include <algorithm>
#include <iterator>
#include <limits>
#include <string_view>
#include <utility>

#include <fnmatch.h>

namespace hpcbatch::store {

// Submissions as a whole: which there are, and how their tasks have ended.

namespace {

bool is_in(const std::vector<ArrayId>& sorted, ArrayId id) {
  return std::binary_search(sorted.begin(), sorted.end(), id);
}

/// Of ARRAY_COLUMNS.
bool is_admitted(const sqlite::Statement& row, const ArrayFilter& filter) {
  if (!filter.client.empty() && row.bytes(1) != filter.client) return false;
  if (!filter.tool.empty() && row.bytes(3) != filter.tool) return false;
  if (filter.among && !is_in(*filter.among, ArrayId{static_cast<std::uint64_t>(row.number(0))}))
    return false;
  return filter.name.empty() || ::fnmatch(filter.name.c_str(), row.text(2).c_str(), 0) == 0;
}

/// `ends`: of its tasks.
bool has_ended_so(const std::vector<WayToEnd>& ends, const ArrayFilter& filter) {
  const auto has = [&](const auto& wanted) {
    return std::any_of(ends.begin(), ends.end(), wanted);
  };
  return (!filter.failure ||
          has([&](const WayToEnd& one) { return filter.failure->admits(one); })) &&
         (!filter.state ||
          has([&](const WayToEnd& one) { return state_after(one.failure) == *filter.state; }));
}

/// Exit codes and signals count where they are what failed.
std::vector<FailureGroup> groups_of(const EndsByWay& ends) {
  std::map<std::tuple<Failure, std::int32_t, std::int32_t>, FailureGroup> by_way;
  for (const auto& [way, sums] : ends) {
    const auto& [failure, exit_code, signal] = way;
    if (failure == Failure::Ok || sums.tasks == 0) continue;
    const std::int32_t code = failure == Failure::ToolFailed ? exit_code : 0;
    const std::int32_t ended_by = failure == Failure::ToolSignal ? signal : 0;
    const auto [at, is_new] = by_way.try_emplace(
        {failure, code, ended_by},
        FailureGroup{
            .failure = failure, .exit_code = code, .signal = ended_by, .first = sums.first});
    at->second.tasks += sums.tasks;
    at->second.first = std::min(at->second.first, sums.first);
  }
  std::vector<FailureGroup> groups;
  groups.reserve(by_way.size());
  for (const auto& [way, group] : by_way) groups.push_back(group);
  const auto is_of_others = [](const FailureGroup& group) {
    return group.failure == Failure::Cancelled || group.failure == Failure::DependencyFailed;
  };
  std::stable_sort(groups.begin(), groups.end(), [&](const auto& a, const auto& b) {
    return std::pair(is_of_others(a), b.tasks) < std::pair(is_of_others(b), a.tasks);
  });
  constexpr std::size_t kMost = 20;
  if (groups.size() > kMost) groups.resize(kMost);
  return groups;
}

}  // namespace

const EndsOfArrays* KnownEnds::find(ArrayId first, ArrayId last) const {
  if (first == last) {
    const auto array = arrays_.find(first);
    return array == arrays_.end() ? nullptr : &array->second;
  }
  const auto submit = submits_.find(first);
  return submit == submits_.end() || submit->second.last != last ? nullptr : &submit->second.sums;
}

EndsOfArrays KnownEnds::keep(ArrayId first, ArrayId last, EndsOfArrays sums) {
  // What is smaller is added up in no time; nobody watches so many.
  constexpr std::uint64_t kLarge = 8;
  constexpr std::size_t kMost = 5000;
  if (sums.tasks < kLarge) return sums;
  if (arrays_.size() + submits_.size() >= kMost) forget_all();
  if (first == last)
    arrays_[first] = sums;
  else
    submits_[first] = {last, sums};
  return sums;
}

std::map<ArrayId, KnownEnds::Known>::iterator KnownEnds::submit_of(ArrayId array) {
  const auto behind = submits_.upper_bound(array);
  if (behind == submits_.begin()) return submits_.end();
  const auto submit = std::prev(behind);
  return submit->second.last < array ? submits_.end() : submit;
}

void KnownEnds::add(ArrayId array, const std::tuple<Failure, std::int32_t, std::int32_t>& way,
                    const EndsOfAWay& ends) {
  const auto add_to = [&](EndsOfArrays& known) {
    EndsOfAWay& sums = known.ends[way];
    sums.ended = sums.tasks == 0 ? ends.ended : std::max(sums.ended, ends.ended);
    sums.tasks += ends.tasks;
    sums.first = std::min(sums.first, ends.first);
    if (ends.started) sums.started = std::min(sums.started.value_or(*ends.started), *ends.started);
  };
  if (const auto one = arrays_.find(array); one != arrays_.end()) add_to(one->second);
  if (const auto submit = submit_of(array); submit != submits_.end()) add_to(submit->second.sums);
  note_attempt(array);
}

const TaskTimes* KnownEnds::times(ArrayId array, bool is_open, Clock::time_point now) const {
  const auto at = times_.find(array);
  if (at == times_.end()) return nullptr;
  const bool is_good = !at->second.is_old || (is_open && now < at->second.due);
  return is_good ? &at->second.times : nullptr;
}

void KnownEnds::keep_times(ArrayId array, const TaskTimes& times, Clock::time_point now,
                           Clock::duration took) {
  // A hundredth of a core is spent on those who watch one.
  constexpr int kTimesAsLong = 100;
  constexpr std::uint64_t kLarge = 1000;
  constexpr std::size_t kMost = 200;
  times_.erase(array);
  if (times.tasks < kLarge) return;
  if (times_.size() >= kMost) times_.clear();
  times_[array] = {times, false, now + took * kTimesAsLong};
}

void KnownEnds::note_attempt(ArrayId array) {
  if (const auto known = times_.find(array); known != times_.end()) known->second.is_old = true;
}

void KnownEnds::forget(ArrayId array) {
  arrays_.erase(array);
  times_.erase(array);
  if (const auto submit = submit_of(array); submit != submits_.end()) submits_.erase(submit);
}

EndsOfArrays History::ends_of(ArrayId first, ArrayId last) {
  constexpr std::size_t kNames = 4;
  EndsOfArrays sums;
  sqlite::Statement rows =
      db_.query("SELECT indices,name FROM arrays WHERE id BETWEEN ? AND ? ORDER BY id");
  rows.bind(first.value, last.value);
  while (rows.step()) {
    sums.tasks += decode_indices(rows.text(0)).size();
    std::string name = rows.text(1);
    if (!name.empty() && sums.names.size() < kNames &&
        std::find(sums.names.begin(), sums.names.end(), name) == sums.names.end())
      sums.names.push_back(std::move(name));
  }
  sqlite::Statement groups = db_.query(
      "SELECT failure,sum(last-first+1),min(CASE WHEN started<>0 THEN started END),max(ended),"
      "exit_code,signal,min(first) FROM results WHERE array BETWEEN ? AND ? "
      "GROUP BY failure,exit_code,signal");
  groups.bind(first.value, last.value);
  while (groups.step()) {
    EndsOfAWay& way = sums.ends[{static_cast<Failure>(groups.number(0)),
                                 static_cast<std::int32_t>(groups.number(4)),
                                 static_cast<std::int32_t>(groups.number(5))}];
    way.tasks = static_cast<std::uint64_t>(groups.number(1));
    if (!groups.is_null(2)) way.started = from_microseconds(groups.number(2));
    way.ended = from_microseconds(groups.number(3));
    way.first = static_cast<std::uint32_t>(groups.number(6));
  }
  return sums;
}

ArrayOverview History::overview(ArrayRow row, std::vector<WayToEnd>& ends, bool whole_submit) {
  ArrayOverview whole{.row = std::move(row)};
  whole.submit_first = whole.submit_last = whole.row.id;
  sqlite::Statement submit = db_.query(
      "SELECT (SELECT min(id) FROM arrays WHERE client=a.client AND key=a.key AND key<>x''),"
      "(SELECT max(id) FROM arrays WHERE client=a.client AND key=a.key AND key<>x'') "
      "FROM arrays a WHERE id=? AND key<>x''");
  if (submit.bind(whole.row.id.value).step()) {
    whole.submit_first = ArrayId{static_cast<std::uint64_t>(submit.number(0))};
    whole.submit_last = ArrayId{static_cast<std::uint64_t>(submit.number(1))};
  }
  const bool is_several = whole_submit && whole.submit_first != whole.submit_last;
  const ArrayId first = is_several ? whole.submit_first : whole.row.id;
  const ArrayId last = is_several ? whole.submit_last : whole.row.id;
  const EndsOfArrays* known = known_ends_.find(first, last);
  EndsOfArrays made;
  if (known == nullptr) made = known_ends_.keep(first, last, ends_of(first, last));
  const EndsOfArrays& sums = known == nullptr ? made : *known;
  whole.tasks = sums.tasks;
  if (is_several) whole.names = sums.names;
  Totals totals;
  for (const auto& [way, ended] : sums.ends) {
    const auto& [failure, exit_code, signal] = way;
    ends.push_back({failure, exit_code, signal});
    totals.of(failure) += ended.tasks;
    if (ended.started)
      whole.started = std::min(whole.started.value_or(*ended.started), *ended.started);
    whole.last_ended = std::max(whole.last_ended.value_or(ended.ended), ended.ended);
  }
  whole.done = totals.done;
  whole.failed = totals.failed;
  whole.cancelled = totals.cancelled;
  return whole;
}

std::optional<ArrayOverview> History::overview(ArrayId id) {
  auto row = array(id);
  if (!row) return std::nullopt;
  std::vector<WayToEnd> ends;
  return overview(std::move(*row), ends, false);
}

std::set<std::string, std::less<>> History::allocations_of(const std::string& site) {
  std::set<std::string, std::less<>> names;
  sqlite::Statement rows = db_.query("SELECT name FROM allocations WHERE site=?");
  rows.bind(site);
  while (rows.step()) names.insert(rows.text(0));
  return names;
}

bool History::has_ended_at(ArrayId id, const std::set<std::string, std::less<>>& allocations) {
  sqlite::Statement pilots = db_.query("SELECT pilot FROM results WHERE array=?");
  pilots.bind(id.value);
  while (pilots.step()) {
    // A pilot is ALLOCATION.RANK.
    const std::string_view pilot = pilots.bytes(0);
    if (allocations.contains(pilot.substr(0, pilot.find('.')))) return true;
  }
  return false;
}

ArrayPage History::arrays(const ArrayFilter& filter) {
  ArrayPage page;
  std::uint64_t below = filter.before
                            ? filter.before->value
                            : static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max());
  const auto at_site = allocations_of(filter.site);
  int looked_at = 0;
  for (bool goes_on = true; std::exchange(goes_on, false);) {
    sqlite::Statement rows =
        db_.query("SELECT " ARRAY_COLUMNS " FROM arrays WHERE id<?1 ORDER BY id DESC LIMIT ?2");
    rows.bind(below, kArraysLookedAt - looked_at);
    while (!goes_on && page.arrays.size() < filter.limit && rows.step()) {
      ++looked_at;
      const ArrayId id{static_cast<std::uint64_t>(rows.number(0))};
      // They are numbered as they come: what is below is older still.
      if (filter.since && from_microseconds(rows.number(10)) < *filter.since) {
        looked_at = 0;
        break;
      }
      page.next = id;
      if (!is_admitted(rows, filter)) continue;
      if (!filter.site.empty() && !is_in(filter.at_site, id) && !has_ended_at(id, at_site))
        continue;
      std::vector<WayToEnd> ends;
      ArrayOverview whole = overview(read_array(rows), ends, filter.whole_submits);
      // What becomes of a submit is so for each of its arrays: the others are not looked at.
      goes_on = whole.names.has_value();
      if (goes_on) page.next = whole.submit_first;
      below = page.next->value;
      if (has_ended_so(ends, filter)) page.arrays.push_back(std::move(whole));
    }
  }
  if (page.arrays.size() < filter.limit && looked_at < kArraysLookedAt) page.next.reset();
  return page;
}

std::vector<FailureGroup> History::failures(ArrayId id) {
  const EndsOfArrays* known = known_ends_.find(id, id);
  return groups_of(known ? known->ends : known_ends_.keep(id, id, ends_of(id, id)).ends);
}

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
  const auto begin = KnownEnds::Clock::now();
  if (const TaskTimes* known = known_ends_.times(array.id, !array.ended, begin)) return *known;
  TaskTimes all = read_times(array);
  const auto end = KnownEnds::Clock::now();
  known_ends_.keep_times(array.id, all, end, end - begin);
  return all;
}

TaskTimes History::read_times(const ArrayRow& array) {
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

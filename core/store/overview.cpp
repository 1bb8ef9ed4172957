// Submissions as a whole: which there are, and how their tasks have ended.
#include "store/encoding.hpp"
#include "store/layout.hpp"
#include "store/store.hpp"

#include <algorithm>
#include <limits>
#include <string_view>

#include <fnmatch.h>

namespace hpcbatch::store {
namespace {

/// Of ARRAY_COLUMNS.
bool is_called(const sqlite::Statement& row, const ArrayFilter& filter) {
  if (!filter.client.empty() && row.bytes(1) != filter.client) return false;
  if (!filter.tool.empty() && row.bytes(3) != filter.tool) return false;
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

bool is_in(const std::vector<ArrayId>& sorted, ArrayId id) {
  return std::binary_search(sorted.begin(), sorted.end(), id);
}

}  // namespace

/// How many tasks there are, and what they are called.
void History::add_all_of_submit(ArrayOverview& whole) {
  constexpr std::size_t kNames = 4;
  whole.tasks = 0;
  std::vector<std::string>& names = whole.names.emplace();
  sqlite::Statement rows =
      db_.query("SELECT indices,name FROM arrays WHERE id BETWEEN ? AND ? ORDER BY id");
  rows.bind(whole.submit_first.value, whole.submit_last.value);
  while (rows.step()) {
    whole.tasks += decode_indices(rows.text(0)).size();
    std::string name = rows.text(1);
    if (!name.empty() && names.size() < kNames &&
        std::find(names.begin(), names.end(), name) == names.end())
      names.push_back(std::move(name));
  }
}

ArrayOverview History::overview(ArrayRow row, std::vector<WayToEnd>& ends, bool whole_submit) {
  ArrayOverview whole{.row = std::move(row)};
  whole.submit_first = whole.submit_last = whole.row.id;
  whole.tasks = whole.row.indices.size();
  sqlite::Statement submit = db_.query(
      "SELECT (SELECT min(id) FROM arrays WHERE client=a.client AND key=a.key AND key<>x''),"
      "(SELECT max(id) FROM arrays WHERE client=a.client AND key=a.key AND key<>x'') "
      "FROM arrays a WHERE id=? AND key<>x''");
  if (submit.bind(whole.row.id.value).step()) {
    whole.submit_first = ArrayId{static_cast<std::uint64_t>(submit.number(0))};
    whole.submit_last = ArrayId{static_cast<std::uint64_t>(submit.number(1))};
  }
  const bool is_several = whole_submit && whole.submit_first != whole.submit_last;
  if (is_several) add_all_of_submit(whole);
  Totals totals;
  sqlite::Statement groups = db_.query(
      "SELECT failure,sum(last-first+1),min(CASE WHEN started<>0 THEN started END),max(ended),"
      "exit_code,signal FROM results WHERE array BETWEEN ? AND ? "
      "GROUP BY failure,exit_code,signal");
  groups.bind((is_several ? whole.submit_first : whole.row.id).value,
              (is_several ? whole.submit_last : whole.row.id).value);
  while (groups.step()) {
    const auto failure = static_cast<Failure>(groups.number(0));
    ends.push_back({failure, static_cast<std::int32_t>(groups.number(4)),
                    static_cast<std::int32_t>(groups.number(5))});
    totals.of(failure) += static_cast<std::uint64_t>(groups.number(1));
    if (!groups.is_null(2)) {
      const Time started = from_microseconds(groups.number(2));
      whole.started = std::min(whole.started.value_or(started), started);
    }
    const Time ended = from_microseconds(groups.number(3));
    whole.last_ended = std::max(whole.last_ended.value_or(ended), ended);
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
  sqlite::Statement rows =
      db_.query("SELECT " ARRAY_COLUMNS " FROM arrays WHERE id<?1 ORDER BY id DESC LIMIT ?2");
  const std::uint64_t below =
      filter.before ? filter.before->value
                    : static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max());
  rows.bind(below, kArraysLookedAt);
  const auto at_site = allocations_of(filter.site);
  std::optional<ArrayId> looked_from;
  int looked_at = 0;
  while (page.arrays.size() < filter.limit && rows.step()) {
    ++looked_at;
    const ArrayId id{static_cast<std::uint64_t>(rows.number(0))};
    // They are numbered as they come: what is below is older still.
    if (filter.since && from_microseconds(rows.number(10)) < *filter.since) {
      looked_at = 0;
      break;
    }
    // One of a submit that was looked at already.
    if (looked_from && id >= *looked_from) continue;
    page.next = id;
    if (!is_called(rows, filter)) continue;
    if (filter.among && !is_in(*filter.among, id)) continue;
    if (!filter.site.empty() && !is_in(filter.at_site, id) && !has_ended_at(id, at_site)) continue;
    std::vector<WayToEnd> ends;
    ArrayOverview whole = overview(read_array(rows), ends, filter.whole_submits);
    // What becomes of it is so for each of its arrays.
    if (whole.names) page.next = looked_from = whole.submit_first;
    if (has_ended_so(ends, filter)) page.arrays.push_back(std::move(whole));
  }
  if (page.arrays.size() < filter.limit && looked_at < kArraysLookedAt) page.next.reset();
  return page;
}

std::vector<FailureGroup> History::failures(ArrayId id) {
  sqlite::Statement rows = db_.query(
      "SELECT failure,CASE failure WHEN ?4 THEN exit_code ELSE 0 END AS code,"
      "CASE failure WHEN ?5 THEN signal ELSE 0 END AS ended_by,sum(last-first+1) AS "
      "tasks,min(first) "
      "FROM results WHERE array=?1 AND failure<>0 GROUP BY failure,code,ended_by "
      "ORDER BY failure IN (?2,?3),tasks DESC LIMIT 20");
  // What others have caused comes last.
  rows.bind(id.value, static_cast<int>(Failure::Cancelled),
            static_cast<int>(Failure::DependencyFailed), static_cast<int>(Failure::ToolFailed),
            static_cast<int>(Failure::ToolSignal));
  std::vector<FailureGroup> groups;
  while (rows.step()) {
    groups.push_back({.failure = static_cast<Failure>(rows.number(0)),
                      .exit_code = static_cast<std::int32_t>(rows.number(1)),
                      .signal = static_cast<std::int32_t>(rows.number(2)),
                      .tasks = static_cast<std::uint64_t>(rows.number(3)),
                      .first = static_cast<std::uint32_t>(rows.number(4))});
  }
  return groups;
}

}  // namespace hpcbatch::store

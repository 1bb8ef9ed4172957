// Tasks that run again: their results are withdrawn and stay to be looked at as earlier attempts.
#include "store/encoding.hpp"
#include "store/history.hpp"
#include "store/result_run.hpp"
#include "store/store.hpp"

#include <algorithm>
#include <map>
#include <set>

namespace hpcbatch::store {
namespace {

/// Of a part of a row.
std::string details_of(const std::string& all, std::int64_t begins, std::int64_t first,
                       std::int64_t last) {
  if (all.empty()) return all;
  return cut_details(all, static_cast<std::size_t>(first - begins),
                     static_cast<std::size_t>(last - first + 1));
}

}  // namespace

void Store::change_needs(ArrayId array, const Needs& needs) {
  {
    sqlite::Statement now = db_.query("SELECT needs FROM arrays WHERE id=?");
    if (!now.bind(array.value).step() || now.text(0) == encode(needs)) return;
  }
  // What has ended or is leased had the old ones; what had before an earlier change, those that
  // were known then.
  // A retry withdraws results, and the marks must not go down with them.
  db_.query(
         "INSERT INTO needs_before SELECT id,newest,lent,needs FROM arrays,"
         "(SELECT max(coalesce((SELECT max(sequence) FROM results WHERE array=?1),0),"
         "coalesce((SELECT max(until) FROM needs_before WHERE array=?1),0)) AS newest),"
         "(SELECT max(coalesce((SELECT max(epoch+last-first) FROM leases WHERE array=?1),0),"
         "coalesce((SELECT max(leased) FROM needs_before WHERE array=?1),0)) AS lent) "
         "WHERE id=?1 AND NOT EXISTS(SELECT 1 FROM needs_before b WHERE b.array=?1 AND "
         "b.until>=newest AND b.leased>=lent)")
      .run(array.value);
  db_.query("UPDATE arrays SET needs=? WHERE id=?").run(encode(needs), array.value);
}

void Store::save(const SaveRevived& save) {
  // The results are withdrawn; what is left of a row comes anew, and must not count again.
  records_.learn_all();
  // Of an array that lives, other tasks may be held.
  db_.query("UPDATE arrays SET held=CASE WHEN ended THEN x'' ELSE held END, ended=0 WHERE id=?")
      .run(save.array.value);
  // It runs again for the user who asked, whoever waited for it before.
  forget_reader(save.array);
  if (save.needs) change_needs(save.array, *save.needs);
  for (const IndexRange& range : save.indices.ranges()) {
    leases_.withdraw(save.array, range);
    db_.query("DELETE FROM metrics WHERE array=? AND item BETWEEN ? AND ?")
        .run(save.array.value, range.first, range.last);
    // They begin with a clean record; what failed before is there to be looked at only.
    db_.query("UPDATE attempts SET past=1 WHERE array=? AND item BETWEEN ? AND ?")
        .run(save.array.value, range.first, range.last);
    withdraw_results(save.array, range);
  }
  records_.skip_all();
}

void Store::withdraw_results(ArrayId array, const IndexRange& range) {
  history_.known_ends().forget(array);
  sqlite::Statement rows =
      db_.query("SELECT " RESULT_COLUMNS " FROM results WHERE array=? AND first<=? AND last>=?");
  rows.bind(array.value, range.last, range.first);
  struct Hit {
    ResultRow row;
    std::string details;
  };
  std::vector<Hit> hit;
  while (rows.step()) hit.push_back({read_result(rows), rows.text(kDetails)});
  for (const auto& [row, details] : hit) {
    // A row may stand for many tasks of which only some run again: it is cut where they begin and
    // end.
    const auto copy = [&, &row = row, &details = details](std::int64_t first, std::int64_t last) {
      db_.query(
             "INSERT INTO results SELECT "
             "NULL,array,?,?,attempt,failure,exit_code,signal,message,started,ended,"
             "pilot,node,peak,cpu,log,last_out,last_err,out_bytes,err_bytes,truncated,epoch,? "
             "FROM results WHERE sequence=?")
          .run(first, last, details_of(details, row.indices.first, first, last), row.sequence);
    };
    if (row.indices.first < range.first) copy(row.indices.first, std::int64_t{range.first} - 1);
    if (row.indices.last > range.last) copy(std::int64_t{range.last} + 1, row.indices.last);
    const IndexRange both{std::max(row.indices.first, range.first),
                          std::min(row.indices.last, range.last)};
    keep_as_attempts(row, details, both);
    db_.query("DELETE FROM results WHERE sequence=?").run(row.sequence);
    totals_then_.of(row.outcome.failure) -= std::uint64_t{both.last} - both.first + 1;
  }
}

void Store::keep_as_attempts(const ResultRow& row, const std::string& details,
                             const IndexRange& range) {
  const auto own = details.empty() ? std::vector<OwnDetails>{} : decode_details(details);
  for (std::uint64_t index = range.first; index <= range.last; ++index) {
    ResultRow one = row;
    if (!own.empty())
      pick(one, own.at(index - row.indices.first), static_cast<std::uint32_t>(index));
    if (one.attempt == 0) continue;  // it never began
    insert_attempt({{row.array, static_cast<std::uint32_t>(index)}, one.attempt, one.epoch},
                   one.pilot, one.node, one.outcome, {false, false, true});
  }
}

// What `retry` of ended tasks needs to know of them, and of those that wait for them.

namespace {

bool admits(const AgainOnly& only, const WayToEnd& end) {
  if (only.failed && end.failure == Failure::Cancelled) return false;
  return only.failures.empty() ||
         std::any_of(only.failures.begin(), only.failures.end(),
                     [&](const FailureChoice& one) { return one.admits(end); });
}

}  // namespace

EndedArray History::ended_or_pruned(ArrayId id, const IndexSet& waiting) {
  return ended(id).value_or(EndedArray{.id = id, .ok = waiting, .not_ok = {}, .is_pruned = true});
}

RevivedArray History::read_revivable(const ArrayRow& row, const IndexSet& wanted,
                                     const AgainOnly& only) {
  RevivedArray revived{.id = row.id, .client = row.client, .all = row.indices};
  sqlite::Statement rows =
      db_.query("SELECT first,last,failure,attempt,exit_code,signal FROM results WHERE array=?");
  rows.bind(row.id.value);
  IndexSet again;
  while (rows.step()) {
    const IndexSet range(IndexRange{static_cast<std::uint32_t>(rows.number(0)),
                                    static_cast<std::uint32_t>(rows.number(1))});
    const auto failure = static_cast<Failure>(rows.number(2));
    if (failure == Failure::Ok) {
      revived.ok.add(range);
      continue;
    }
    const IndexSet chosen = admits(only, {failure, static_cast<std::int32_t>(rows.number(4)),
                                          static_cast<std::int32_t>(rows.number(5))})
                                ? range.intersection(wanted)
                                : IndexSet{};
    again.add(chosen);
    IndexSet rest = range;
    rest.remove(chosen);
    revived.not_ok.add(rest);
    if (is_a_failure_of_its_own(failure)) revived.failed.add(rest);
    if (rows.number(3) != 0 && !chosen.empty()) {
      revived.attempts.emplace_back(chosen.ranges().front().first,
                                    static_cast<std::uint32_t>(rows.number(3)));
    }
  }
  revived.array = {.indices = again,
                   .needs = row.needs,
                   .priority = row.priority,
                   .retries = row.retries,
                   .max_running = row.max_running,
                   .give_up_at = row.give_up_at,
                   .gives_up_running = row.gives_up_running,
                   .held = false,
                   .streams_input = false,
                   .after = row.after,
                   .course = row.course};
  return revived;
}

std::map<ArrayId, History::Chosen> History::chosen_of(const std::vector<Selection>& tasks) {
  std::map<ArrayId, Chosen> chosen;
  for (const Selection& selection : tasks) {
    auto at = chosen.find(selection.array);
    if (at == chosen.end()) {
      auto row = array(selection.array);
      if (!row) continue;
      at = chosen.emplace(selection.array, Chosen{std::move(*row), {}}).first;
    }
    at->second.wanted.add(selection.indices.value_or(at->second.row.indices));
  }
  return chosen;
}

// NOLINTNEXTLINE(readability-function-cognitive-complexity)
Revivable History::revivable(const std::vector<Selection>& tasks, const AgainOnly& only) {
  std::map<ArrayId, RevivedArray> found;
  std::set<ArrayId> live;
  std::vector<ArrayId> to_visit;
  const AgainOnly of_dependants{.failures = {FailureChoice{.failure = Failure::DependencyFailed}}};
  for (const auto& [id, chosen] : chosen_of(tasks)) {
    RevivedArray revived = read_revivable(chosen.row, chosen.wanted, only);
    if (revived.array.indices.empty()) continue;
    if (!chosen.row.ended) live.insert(id);
    found.emplace(id, std::move(revived));
    to_visit.push_back(id);
  }
  while (!to_visit.empty()) {
    const ArrayId cause = to_visit.back();
    to_visit.pop_back();
    std::vector<ArrayId> dependants;
    sqlite::Statement rows = db_.query("SELECT array FROM dependencies WHERE on_array=?");
    rows.bind(cause.value);
    while (rows.step()) dependants.push_back(ArrayId{static_cast<std::uint64_t>(rows.number(0))});
    for (const ArrayId id : dependants) {
      if (found.contains(id)) continue;
      const auto row = array(id);
      if (!row) continue;
      RevivedArray revived = read_revivable(*row, row->indices, of_dependants);
      if (revived.array.indices.empty()) continue;
      if (!row->ended) live.insert(id);
      found.emplace(id, std::move(revived));
      to_visit.push_back(id);
    }
  }
  Revivable all;
  std::map<ArrayId, IndexSet> waited_for;
  for (auto& [id, revived] : found) {
    for (const Dependency& dependency : revived.array.after)
      waited_for[dependency.array].add(revived.all);
    all.arrays.push_back(std::move(revived));
  }
  for (const auto& [id, waiting] : waited_for) {
    const auto row = array(id);
    if (row && !row->ended) live.insert(id);
    all.ended.push_back(ended_or_pruned(id, waiting));
  }
  all.live.assign(live.begin(), live.end());
  return all;
}

}  // namespace hpcbatch::store

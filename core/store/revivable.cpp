// What `retry` of ended tasks needs to know of them, and of those that wait for them.
#include "store/history.hpp"

#include <algorithm>
#include <map>
#include <set>

namespace hpcbatch::store {
namespace {

bool admits(const AgainOnly& only, const WayToEnd& end) {
  if (only.failed && end.failure == Failure::Cancelled) return false;
  return only.failures.empty() ||
         std::any_of(only.failures.begin(), only.failures.end(),
                     [&](const FailureChoice& one) { return one.admits(end); });
}

}  // namespace

EndedArray History::ended_or_pruned(ArrayId id, const IndexSet& waiting) {
  return ended(id).value_or(EndedArray{id, waiting, {}});
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
                   .after = row.after};
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

// What clients ask of tasks that have ended, or of what a task runs.
#include "store/encoding.hpp"
#include "store/layout.hpp"
#include "store/result_rows.hpp"
#include "store/result_run.hpp"
#include "store/store.hpp"

#include <algorithm>
#include <limits>
#include <map>
#include <set>

namespace hpcbatch::store {
namespace {

// What a commit may take away, so that leases and results need not wait for long behind it.
constexpr std::uint64_t kPrunedAtOnce = 50'000;

}  // namespace

std::optional<StoredRecipe> Store::recipe(ArrayId array) {
  sqlite::Statement row = db_.query("SELECT recipe,environment FROM arrays WHERE id=?");
  if (!row.bind(array.value).step()) return std::nullopt;
  return StoredRecipe{row.text(0), static_cast<std::uint64_t>(row.number(1))};
}

std::string Store::item(TaskId task) {
  sqlite::Statement row = db_.query("SELECT text FROM items WHERE array=? AND item=?");
  return row.bind(task.array.value, task.index).step() ? row.text(0) : "";
}

std::string Store::environment(std::uint64_t id) {
  sqlite::Statement row = db_.query("SELECT bytes FROM environments WHERE id=?");
  return row.bind(id).step() ? row.text(0) : "";
}

ArrayRow Store::read_array(sqlite::Statement& row) {
  return {.id = ArrayId{static_cast<std::uint64_t>(row.number(0))},
          .client = row.text(1),
          .name = row.text(2),
          .tool = row.text(3),
          .indices = decode_indices(row.text(4)),
          .needs = decode_needs(row.text(5)),
          .priority = static_cast<std::int32_t>(row.number(6)),
          .retries = static_cast<std::uint32_t>(row.number(7)),
          .max_running = static_cast<std::uint32_t>(row.number(8)),
          .give_up_at = static_cast<std::uint32_t>(row.number(13)),
          .gives_up_running = row.number(14) != 0,
          .after = decode_dependencies(row.text(9)),
          .submitted = from_microseconds(row.number(10)),
          .ended = row.number(11) != 0,
          .recipe = row.text(12)};
}

std::optional<ArrayRow> Store::array(ArrayId id) {
  sqlite::Statement row = db_.query("SELECT " ARRAY_COLUMNS " FROM arrays WHERE id=?");
  if (!row.bind(id.value).step()) return std::nullopt;
  return read_array(row);
}

std::optional<ResultRow> Store::result(TaskId task) {
  // The last range that begins at or before the index is the only one that can hold it.
  sqlite::Statement row =
      db_.query("SELECT " RESULT_COLUMNS
                " FROM results WHERE array=? AND first<=? ORDER BY first DESC LIMIT 1");
  if (!row.bind(task.array.value, task.index).step()) return std::nullopt;
  ResultRow found = read_result(row);
  if (found.indices.last < task.index) return std::nullopt;
  if (const std::string details = row.text(kDetails); !details.empty())
    pick(found, decode_details(details).at(task.index - found.indices.first), task.index);
  return found;
}

std::vector<ResultRow> Store::results(const Filter& filter) {
  const int state = filter.state ? static_cast<int>(*filter.state) : -1;
  const int ok = static_cast<int>(Failure::Ok);
  const int cancelled = static_cast<int>(Failure::Cancelled);
  const ArrayId lowest = filter.array.value_or(ArrayId{});
  TaskId end{filter.array ? ArrayId{filter.array->value + 1}
                          : ArrayId{std::numeric_limits<std::int64_t>::max()},
             0};
  if (filter.before) end = std::min(end, *filter.before);
  sqlite::Statement rows =
      db_.query("SELECT " RESULT_COLUMNS
                " FROM results r WHERE array>=?1 AND (array,first)<(?2,?3) AND "
                "(?4<0 OR (?4=?5 AND failure=?6) OR (?4=?7 AND failure=?8) OR (?4=?9 AND failure "
                "NOT IN (?6,?8))) AND "
                "(?10=x'' OR (SELECT client FROM arrays a WHERE a.id=r.array)=?10) ORDER BY array "
                "DESC, first DESC LIMIT ?11");
  rows.bind(lowest.value, end.array.value, end.index, state, static_cast<int>(TaskState::Done), ok,
            static_cast<int>(TaskState::Cancelled), cancelled, static_cast<int>(TaskState::Failed),
            filter.client, filter.limit);
  std::vector<ResultRow> found;
  while (rows.step()) found.push_back(read_result(rows));
  return found;
}

std::vector<AttemptRow> Store::attempts(TaskId task) {
  sqlite::Statement rows = db_.query(
      "SELECT attempt,failure,message,pilot,node,started,ended,exit_code,signal,peak,cpu,epoch,"
      "log,last_out,last_err,out_bytes,err_bytes,truncated FROM attempts WHERE array=? AND item=? "
      "ORDER BY ended");
  rows.bind(task.array.value, task.index);
  std::vector<AttemptRow> found;
  while (rows.step()) {
    AttemptRow row{.attempt = static_cast<std::uint32_t>(rows.number(0)),
                   .pilot = rows.text(3),
                   .node = rows.text(4)};
    row.outcome.failure = static_cast<Failure>(rows.number(1));
    row.outcome.message = rows.text(2);
    if (rows.number(5) != 0) row.outcome.started = from_microseconds(rows.number(5));
    row.outcome.ended = from_microseconds(rows.number(6));
    row.outcome.exit_code = static_cast<std::int32_t>(rows.number(7));
    row.outcome.signal = static_cast<std::int32_t>(rows.number(8));
    row.outcome.peak_memory = static_cast<std::uint64_t>(rows.number(9));
    row.outcome.cpu_time = Duration{rows.number(10)};
    row.epoch = static_cast<std::uint64_t>(rows.number(11));
    row.outcome.log = read_log_place(rows, 12);
    found.push_back(std::move(row));
  }
  return found;
}

ChangeFeed Store::changes(const std::string& client, std::uint64_t after, std::uint32_t limit) {
  ChangeFeed feed{{}, after, after < std::stoull(meta("pruned"))};
  sqlite::Statement rows =
      db_.query("SELECT " RESULT_COLUMNS
                " FROM results r WHERE sequence>?1 AND "
                "(?2=x'' OR (SELECT client FROM arrays a WHERE a.id=r.array)=?2) "
                "ORDER BY sequence LIMIT ?3");
  rows.bind(after, client, limit);
  while (rows.step()) feed.rows.push_back(read_result(rows));
  if (!feed.rows.empty()) feed.cursor = feed.rows.back().sequence;
  return feed;
}

std::vector<ArrayId> Store::ids_of_key(const std::string& client, const std::string& key) {
  sqlite::Statement rows =
      db_.query("SELECT id FROM arrays WHERE client=? AND key=? AND key<>x'' ORDER BY id");
  rows.bind(client, key);
  std::vector<ArrayId> ids;
  while (rows.step()) ids.push_back(ArrayId{static_cast<std::uint64_t>(rows.number(0))});
  return ids;
}

std::uint64_t Store::newest_change() {
  sqlite::Statement newest = db_.query("SELECT max(sequence) FROM results");
  const std::uint64_t pruned = std::stoull(meta("pruned"));
  return newest.step() ? std::max(pruned, static_cast<std::uint64_t>(newest.number(0))) : pruned;
}

std::optional<EndedArray> Store::ended(ArrayId id) {
  if (!db_.query("SELECT 1 FROM arrays WHERE id=?").bind(id.value).step()) return std::nullopt;
  EndedArray ended{id, {}, {}};
  sqlite::Statement rows = db_.query("SELECT first,last,failure FROM results WHERE array=?");
  rows.bind(id.value);
  while (rows.step()) {
    const IndexRange range{static_cast<std::uint32_t>(rows.number(0)),
                           static_cast<std::uint32_t>(rows.number(1))};
    (rows.number(2) == 0 ? ended.ok : ended.not_ok).add(range);
  }
  if (ended.not_ok.empty()) return ended;
  sqlite::Statement first = db_.query(
      "SELECT first,last,failure,message FROM results WHERE array=? AND failure<>0 ORDER BY "
      "sequence LIMIT 1");
  first.bind(id.value);
  if (first.step()) {
    const IndexRange range{static_cast<std::uint32_t>(first.number(0)),
                           static_cast<std::uint32_t>(first.number(1))};
    ended.failed_first.add(range);
    ended.first_cause =
        first_cause({id, range.first}, static_cast<Failure>(first.number(2)), first.text(3));
  }
  return ended;
}

/// What was pruned had ended long ago; what waits for it, `waiting`, would have been ended then if
/// it had failed.
EndedArray Store::ended_or_pruned(ArrayId id, const IndexSet& waiting) {
  return ended(id).value_or(EndedArray{id, waiting, {}});
}

std::uint64_t& Store::Totals::of(Failure failure) {
  const TaskState state = state_after(failure);
  return state == TaskState::Done ? done : state == TaskState::Cancelled ? cancelled : failed;
}

void Store::count_results() {
  totals_ = {};
  sqlite::Statement rows =
      db_.query("SELECT failure, sum(last-first+1) FROM results GROUP BY failure");
  while (rows.step())
    totals_.of(static_cast<Failure>(rows.number(0))) += static_cast<std::uint64_t>(rows.number(1));
}

Store::Totals Store::totals(ArrayId array) {
  Totals totals;
  sqlite::Statement rows =
      db_.query("SELECT failure, sum(last-first+1) FROM results WHERE array=? GROUP BY failure");
  rows.bind(array.value);
  while (rows.step())
    totals.of(static_cast<Failure>(rows.number(0))) += static_cast<std::uint64_t>(rows.number(1));
  return totals;
}

Store::Totals Store::totals(ArrayId array, const IndexSet& indices) {
  Totals totals;
  for (const IndexRange& range : indices.ranges()) {
    // Rows do not overlap: of those that begin before the range, the last one alone can reach into
    // it.
    sqlite::Statement rows = db_.query(
        "SELECT failure, min(last,?3)-max(first,?2)+1 FROM results WHERE array=?1 AND last>=?2 AND "
        "first BETWEEN "
        "coalesce((SELECT max(first) FROM results WHERE array=?1 AND first<=?2),?2) AND ?3");
    rows.bind(array.value, range.first, range.last);
    while (rows.step())
      totals.of(static_cast<Failure>(rows.number(0))) += static_cast<std::uint64_t>(rows.number(1));
  }
  return totals;
}

RevivedArray Store::read_revivable(const ArrayRow& row, const IndexSet& wanted, Of which) {
  RevivedArray revived{.id = row.id, .client = row.client, .all = row.indices};
  sqlite::Statement rows =
      db_.query("SELECT first,last,failure,attempt FROM results WHERE array=?");
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
    const bool is_chosen = which == Of::All ||
                           (which == Of::Failed && failure != Failure::Cancelled) ||
                           (which == Of::Dependants && failure == Failure::DependencyFailed);
    const IndexSet chosen = is_chosen ? range.intersection(wanted) : IndexSet{};
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

// NOLINTNEXTLINE(readability-function-cognitive-complexity)
Revivable Store::revivable(const std::vector<Selection>& tasks, bool failed_only) {
  std::map<ArrayId, RevivedArray> found;
  std::set<ArrayId> live;
  std::vector<ArrayId> to_visit;
  for (const Selection& selection : tasks) {
    const auto row = array(selection.array);
    if (!row) continue;
    RevivedArray revived = read_revivable(*row, selection.indices.value_or(row->indices),
                                          failed_only ? Of::Failed : Of::All);
    if (revived.array.indices.empty()) continue;
    if (!row->ended) live.insert(selection.array);
    found.insert_or_assign(selection.array, std::move(revived));
    to_visit.push_back(selection.array);
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
      RevivedArray revived = read_revivable(*row, row->indices, Of::Dependants);
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

bool Store::prune(Time limit, std::uint32_t arrays) {
  sqlite::Transaction transaction(db_);
  Totals left = totals_;
  std::vector<ArrayId> old;
  {
    sqlite::Statement rows =
        db_.query("SELECT id FROM arrays WHERE ended<>0 AND ended<? ORDER BY ended LIMIT ?");
    rows.bind(to_microseconds(limit), arrays);
    while (rows.step()) old.push_back(ArrayId{static_cast<std::uint64_t>(rows.number(0))});
  }
  std::uint64_t pruned = std::stoull(meta("pruned"));
  const std::string highest = meta("pruned_array");
  std::uint64_t pruned_array = highest.empty() ? 0 : std::stoull(highest);
  std::uint64_t rows = 0;
  std::size_t taken = 0;
  for (const ArrayId id : old) {
    if (rows > kPrunedAtOnce) break;
    ++taken;
    const Totals gone = totals(id);
    rows += gone.done + gone.failed + gone.cancelled;
    left.done -= gone.done;
    left.failed -= gone.failed;
    left.cancelled -= gone.cancelled;
    pruned_array = std::max(pruned_array, id.value);
    {
      sqlite::Statement last = db_.query("SELECT max(sequence) FROM results WHERE array=?");
      last.bind(id.value).step();
      pruned = std::max(pruned, static_cast<std::uint64_t>(last.number(0)));
    }
    for (const char* statement :
         {"DELETE FROM results WHERE array=?", "DELETE FROM attempts WHERE array=?",
          "DELETE FROM items WHERE array=?", "DELETE FROM dependencies WHERE array=?",
          // NOLINTNEXTLINE(bugprone-suspicious-missing-comma)
          "UPDATE environments SET arrays=arrays-1 "
          "WHERE id=(SELECT environment FROM arrays WHERE id=?)",
          "DELETE FROM arrays WHERE id=?"}) {
      db_.query(statement).run(id.value);
    }
  }
  const bool more = taken == arrays || taken != old.size();
  if (!more) {
    db_.query("DELETE FROM environments WHERE arrays=0").run();
    db_.query("DELETE FROM allocations WHERE ended<>0 AND ended<?").run(to_microseconds(limit));
  }
  set_meta("pruned", std::to_string(pruned));
  set_meta("pruned_array", std::to_string(pruned_array));
  transaction.commit();
  totals_ = left;
  (void)shorten_log();  // should it fail, the next commit will try and tell
  return more;
}

}  // namespace hpcbatch::store

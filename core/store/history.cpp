// What clients ask of tasks that have ended, or of what a task runs.
#include "store/history.hpp"

#include "model/batch_number.hpp"
#include "store/encoding.hpp"
#include "store/layout.hpp"
#include "store/result_run.hpp"

#include <algorithm>
#include <limits>

namespace hpcbatch::store {
namespace {

std::vector<ResultRow> each_of(const ResultRow& row, const std::string& details) {
  if (details.empty()) return {row};
  const std::vector<OwnDetails> own = decode_details(details);
  std::vector<ResultRow> each(own.size(), row);
  for (std::size_t i = 0; i < own.size(); ++i)
    pick(each[i], own[i], row.indices.first + static_cast<std::uint32_t>(i));
  return each;
}

}  // namespace

std::optional<StoredRecipe> History::recipe(ArrayId array) {
  sqlite::Statement row = db_.query("SELECT recipe,environment FROM arrays WHERE id=?");
  if (!row.bind(array.value).step()) return std::nullopt;
  return StoredRecipe{row.text(0), static_cast<std::uint64_t>(row.number(1))};
}

std::string History::item(TaskId task) {
  sqlite::Statement row = db_.query("SELECT text FROM items WHERE array=? AND item=?");
  return row.bind(task.array.value, task.index).step() ? row.text(0) : "";
}

std::string History::environment(std::uint64_t id) {
  sqlite::Statement row = db_.query("SELECT bytes FROM environments WHERE id=?");
  return row.bind(id).step() ? row.text(0) : "";
}

ArrayRow read_array(sqlite::Statement& row) {
  After after = decode_after(row.text(9));
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
          .after = std::move(after.dependencies),
          .course = std::move(after.course),
          .submitted = from_microseconds(row.number(10)),
          .ended = row.number(11) != 0,
          .recipe = row.text(12)};
}

std::vector<ArrayId> History::open_ones_called(const std::string& name) {
  sqlite::Statement rows = db_.query("SELECT id FROM arrays WHERE ended=0 AND name=? ORDER BY id");
  rows.bind(name);
  std::vector<ArrayId> found;
  while (rows.step()) found.push_back(ArrayId{static_cast<std::uint64_t>(rows.number(0))});
  return found;
}

std::optional<ArrayRow> History::array(ArrayId id) {
  sqlite::Statement row = db_.query("SELECT " ARRAY_COLUMNS " FROM arrays WHERE id=?");
  if (!row.bind(id.value).step()) return std::nullopt;
  return read_array(row);
}

std::optional<ResultRow> History::result(TaskId task) {
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

Needs History::needs_then(const ArrayRow& array, const ResultRow& result) {
  sqlite::Statement row = db_.query(
      "SELECT needs FROM needs_before WHERE array=?1 AND (until>=?2 OR (?3>0 AND "
      "leased>=?3)) ORDER BY until, leased LIMIT 1");
  row.bind(array.id.value, result.sequence, static_cast<std::int64_t>(result.epoch));
  return row.step() ? decode_needs(row.text(0)) : array.needs;
}

Needs History::needs_then(const ArrayRow& array, std::uint64_t epoch) {
  ResultRow none;
  none.sequence = std::numeric_limits<std::int64_t>::max();
  none.epoch = epoch;
  return needs_then(array, none);
}

std::vector<ResultRow> History::results(const Filter& filter) {
  const int state = filter.state ? static_cast<int>(*filter.state) : -1;
  const int ok = static_cast<int>(Failure::Ok);
  const int cancelled = static_cast<int>(Failure::Cancelled);
  const ArrayId lowest = filter.array.value_or(ArrayId{});
  TaskId end{filter.array ? ArrayId{filter.array->value + 1}
                          : ArrayId{std::numeric_limits<std::int64_t>::max()},
             0};
  if (filter.before) end = std::min(end, *filter.before);
  const FailureChoice only = filter.failure.value_or(FailureChoice{});
  // Few of very many: an array has ended with the last of its tasks, so that in all others nothing
  // has ended since.
  const std::string from = filter.ended_since && !filter.array
                               ? "SELECT " RESULT_COLUMNS
                                 " FROM (SELECT id AS of_array FROM arrays WHERE ended=0 UNION ALL "
                                 "SELECT id FROM arrays WHERE ended<>0 AND ended>=?16) "
                                 "CROSS JOIN results r ON r.array=of_array WHERE "
                               : "SELECT " RESULT_COLUMNS " FROM results r WHERE ";
  const std::string text =
      from +
      "ended>=?16 AND array>=?1 AND (array,first)<(?2,?3) AND "
      "(?4<0 OR (?4=?5 AND failure=?6) OR (?4=?7 AND failure=?8) OR (?4=?9 AND failure "
      "NOT IN (?6,?8))) AND "
      "(?10=x'' OR (SELECT client FROM arrays a WHERE a.id=r.array)=?10) AND "
      "(?12<0 OR failure=?12) AND (?13=0 OR log<>x'' OR truncated<>0) AND "
      "(?14=0 OR (failure<>0 AND "
      "CASE WHEN signal<>0 THEN 128+signal ELSE exit_code END=?14)) AND (?15=0 OR "
      "(failure<>0 AND signal=?15)) "
      "ORDER BY array DESC, first DESC LIMIT ?11";
  sqlite::Statement rows = db_.query(text.c_str());
  rows.bind(lowest.value, end.array.value, end.index, state, static_cast<int>(TaskState::Done), ok,
            static_cast<int>(TaskState::Cancelled), cancelled, static_cast<int>(TaskState::Failed),
            filter.client, filter.limit, only.failure ? static_cast<int>(*only.failure) : -1,
            filter.printed ? 1 : 0, only.exit_code, only.signal,
            filter.ended_since ? to_microseconds(*filter.ended_since) : 0);
  std::vector<ResultRow> found;
  while (rows.step()) found.push_back(read_result(rows));
  return found;
}

std::string History::metrics(TaskId task, std::uint64_t epoch) {
  sqlite::Statement row =
      db_.query("SELECT json FROM metrics WHERE array=? AND item=? AND epoch=?");
  row.bind(task.array.value, task.index, epoch);
  return row.step() ? row.text(0) : "";
}

History::Metrics History::metrics(Time begin, Time end, std::uint64_t most_bytes) {
  sqlite::Statement rows = db_.query(
      "SELECT array,item,json FROM metrics WHERE ended>=? AND ended<? ORDER BY ended DESC");
  rows.bind(to_microseconds(begin), to_microseconds(end));
  Metrics found;
  for (std::uint64_t bytes = 0; rows.step();) {
    const TaskId task{ArrayId{static_cast<std::uint64_t>(rows.number(0))},
                      static_cast<std::uint32_t>(rows.number(1))};
    std::string text = rows.text(2);
    bytes += text.size();
    if (bytes > most_bytes) {
      found.is_cut = true;
      break;
    }
    found.tasks.emplace_back(task, std::move(text));
  }
  return found;
}

std::vector<AttemptRow> History::attempts(TaskId task) {
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

ChangeFeed History::changes(const std::string& client, std::uint64_t after, std::uint32_t limit) {
  ChangeFeed feed{{}, after, after < std::stoull(meta_of(db_, "pruned"))};
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

std::vector<ResultRow> History::apart(const ResultRow& row) {
  sqlite::Statement details = db_.query("SELECT details FROM results WHERE sequence=?");
  return each_of(row, details.bind(row.sequence).step() ? details.text(0) : "");
}

ChangeFeed History::runs(std::uint64_t after, std::uint32_t limit) {
  ChangeFeed feed{{}, std::max(after, newest_change()), false};
  // What never ran is left out here: however much of it was cancelled, it hides none of the others.
  sqlite::Statement rows = db_.query("SELECT " RESULT_COLUMNS
                                     " FROM results WHERE sequence>? AND started<>0 AND pilot<>x'' "
                                     "ORDER BY sequence DESC LIMIT ?");
  rows.bind(after, limit);
  while (feed.rows.size() < limit && rows.step()) {
    const ResultRow row = read_result(rows);
    std::vector<ResultRow> each = each_of(row, rows.text(kDetails));
    for (; !each.empty() && feed.rows.size() < limit; each.pop_back())
      feed.rows.push_back(std::move(each.back()));
  }
  return feed;
}

std::optional<Titles> History::titles(ArrayId array) {
  sqlite::Statement row = db_.query("SELECT name,tool FROM arrays WHERE id=?");
  if (!row.bind(array.value).step()) return std::nullopt;
  return Titles{row.text(0), row.text(1)};
}

std::vector<ArrayId> History::ids_of_key(const std::string& client, const std::string& key) {
  sqlite::Statement rows =
      db_.query("SELECT id FROM arrays WHERE client=? AND key=? AND key<>x'' ORDER BY id");
  rows.bind(client, key);
  std::vector<ArrayId> ids;
  while (rows.step()) ids.push_back(ArrayId{static_cast<std::uint64_t>(rows.number(0))});
  return ids;
}

std::vector<ArrayId> History::ids_of_submit(ArrayId first, ArrayId last) {
  sqlite::Statement rows = db_.query(
      "SELECT a.id FROM arrays f JOIN arrays a ON a.client=f.client AND a.key=f.key AND "
      "a.key<>x'' WHERE f.id=?1 AND a.id BETWEEN ?1 AND ?2 ORDER BY a.id");
  rows.bind(first.value, last.value);
  std::vector<ArrayId> ids;
  while (rows.step()) ids.push_back(ArrayId{static_cast<std::uint64_t>(rows.number(0))});
  return ids;
}

std::uint64_t History::newest_change() {
  sqlite::Statement newest = db_.query("SELECT max(sequence) FROM results");
  const std::uint64_t pruned = std::stoull(meta_of(db_, "pruned"));
  return newest.step() ? std::max(pruned, static_cast<std::uint64_t>(newest.number(0))) : pruned;
}

std::optional<TaskId> History::task_of_id(ArrayId id) {
  sqlite::Statement row = db_.query(
      "SELECT n.array,n.ids,a.indices FROM numbered n JOIN arrays a ON a.id=n.array "
      "WHERE n.array<? ORDER BY n.array DESC LIMIT 1");
  if (!row.bind(id.value).step()) return std::nullopt;
  const ArrayId array{static_cast<std::uint64_t>(row.number(0))};
  const std::uint64_t position = id.value - array.value;
  if (position >= static_cast<std::uint64_t>(row.number(1))) return std::nullopt;
  const auto index = index_at(steps_of(decode_indices(row.text(2))), position);
  return index ? std::optional(TaskId{array, *index}) : std::nullopt;
}

std::optional<EndedArray> History::ended(ArrayId id) {
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

std::uint64_t& Totals::of(Failure failure) {
  const TaskState state = state_after(failure);
  return state == TaskState::Done ? done : state == TaskState::Cancelled ? cancelled : failed;
}

std::optional<SubmissionEnd> History::end_of(ArrayId first, ArrayId last) {
  SubmissionEnd end{.first = first, .last = last};
  {
    sqlite::Statement row = db_.query("SELECT client,name,submitted FROM arrays WHERE id=?");
    if (!row.bind(first.value).step()) return std::nullopt;
    end.client = row.text(0);
    end.name = row.text(1);
    end.submitted = from_microseconds(row.number(2));
  }
  {
    sqlite::Statement rows = db_.query(
        "SELECT failure, sum(last-first+1), max(ended) FROM results WHERE array BETWEEN ? AND ? "
        "GROUP BY failure");
    rows.bind(first.value, last.value);
    while (rows.step()) {
      end.totals.of(static_cast<Failure>(rows.number(0))) +=
          static_cast<std::uint64_t>(rows.number(1));
      end.ended = std::max(end.ended, from_microseconds(rows.number(2)));
    }
  }
  if (end.totals.failed == 0) return end;
  TaskId task;
  {
    sqlite::Statement row = db_.query(
        "SELECT array, first FROM results WHERE array BETWEEN ? AND ? AND failure NOT IN (?,?) "
        "ORDER BY sequence LIMIT 1");
    if (!row.bind(first.value, last.value, static_cast<int>(Failure::Ok),
                  static_cast<int>(Failure::Cancelled))
             .step())
      return end;
    task = {ArrayId{static_cast<std::uint64_t>(row.number(0))},
            static_cast<std::uint32_t>(row.number(1))};
  }
  if (auto found = result(task)) end.first_failure = FirstFailure{task, std::move(*found)};
  return end;
}

Totals History::totals(ArrayId array) {
  Totals totals;
  sqlite::Statement rows =
      db_.query("SELECT failure, sum(last-first+1) FROM results WHERE array=? GROUP BY failure");
  rows.bind(array.value);
  while (rows.step())
    totals.of(static_cast<Failure>(rows.number(0))) += static_cast<std::uint64_t>(rows.number(1));
  return totals;
}

Totals History::totals(ArrayId array, const IndexSet& indices) {
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

}  // namespace hpcbatch::store

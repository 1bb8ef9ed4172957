// How each thing that is saved changes the store.
#include "model/batch_number.hpp"
#include "store/encoding.hpp"
#include "store/layout.hpp"
#include "store/result_run.hpp"
#include "store/store.hpp"

#include <algorithm>
#include <functional>
#include <string_view>
#include <utility>

namespace hpcbatch::store {

/// Of the environment of one more array; made where it is new.
std::int64_t Store::id_of(const std::shared_ptr<const std::string>& environment) {
  if (!environment || environment->empty()) return 0;
  // Those of one submission share one.
  if (environment == environment_.bytes) {
    ++environment_.arrays;
    return environment_.id;
  }
  count_arrays_of_environment();
  const auto hash = static_cast<std::int64_t>(std::hash<std::string_view>{}(*environment));
  sqlite::Statement known = db_.query("SELECT id FROM environments WHERE hash=? AND bytes=?");
  if (known.bind(hash, *environment).step()) {
    environment_ = {environment, known.number(0), 1};
  } else {
    db_.query("INSERT INTO environments(bytes,hash,arrays) VALUES(?,?,0)").run(*environment, hash);
    environment_ = {environment, db_.last_row(), 1};
  }
  return environment_.id;
}

void Store::count_arrays_of_environment() {
  if (environment_.arrays == 0) return;
  db_.query("UPDATE environments SET arrays=arrays+? WHERE id=?")
      .run(std::exchange(environment_.arrays, 0), environment_.id);
}

void Store::save(const SaveArrays& save, const Write& with) {
  for (std::size_t i = 0; i < save.arrays.size(); ++i) save_array(save, i, with.recipes.at(i));
  for (const std::string& target : with.notify)
    db_.query("INSERT OR IGNORE INTO notices VALUES(?,?,?)")
        .run(save.id_of(0).value, save.id_of(save.arrays.size() - 1).value, target);
}

std::vector<Notice> Store::notices() {
  std::vector<Notice> notices;
  sqlite::Statement rows = db_.query("SELECT first,last,target FROM notices ORDER BY first");
  while (rows.step())
    notices.push_back({ArrayId{static_cast<std::uint64_t>(rows.number(0))},
                       ArrayId{static_cast<std::uint64_t>(rows.number(1))}, rows.text(2)});
  return notices;
}

void Store::forget(const std::vector<Notice>& notices) {
  sqlite::Transaction transaction(db_);
  for (const Notice& notice : notices)
    db_.query("DELETE FROM notices WHERE first=? AND target=?")
        .run(notice.first.value, notice.target);
  transaction.commit();
  note_commit(false);
}

void Store::save_array(const SaveArrays& save, std::size_t position, const Recipe& recipe) {
  const std::int64_t environment = id_of(recipe.environment);
  const NewArray& array = save.arrays[position];
  const ArrayId id = save.id_of(position);
  const std::uint64_t ids = ids_taken(array.numbered, array.indices);
  highest_ = std::max(highest_, id.value + ids - 1);
  db_.query("INSERT INTO arrays VALUES(?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,0,?,?,?,?)")
      .run(id.value, save.client, save.key, save.content, recipe.words->name, recipe.words->tool,
           encode(array.indices), encode(array.needs), array.priority, array.retries,
           array.max_running, array.streams_input,
           array.held ? encode(array.indices) : std::string{},
           encode(array.after, array.course.get()), to_microseconds(save.submitted), recipe.bytes,
           environment, array.give_up_at, array.gives_up_running);
  if (array.within) {
    db_.query("INSERT INTO submitted_within VALUES(?,?,?)")
        .run(id.value, array.within->array.value, array.within->index);
  }
  if (ids > 1) db_.query("INSERT INTO numbered VALUES(?,?)").run(id.value, ids);
  if (save.read_by) save_reader(id, *save.read_by);
  save_dependencies(id, array.after);
  std::uint32_t index = 0;
  for (const std::string& item : recipe.words->items) {
    db_.query("INSERT INTO items VALUES(?,?,?)").run(id.value, ++index, item);
  }
}

void Store::save_dependencies(ArrayId id, const std::vector<Dependency>& after) {
  for (const Dependency& dependency : after) {
    db_.query("INSERT OR IGNORE INTO dependencies VALUES(?,?)")
        .run(dependency.array.value, id.value);
  }
}

void Store::save(const SaveTerms& save) {
  const NewArray& terms = save.terms;
  change_needs(save.array, terms.needs);
  db_.query("UPDATE arrays SET priority=?,retries=?,max_running=?,after=? WHERE id=?")
      .run(terms.priority, terms.retries, terms.max_running,
           encode(terms.after, terms.course.get()), save.array.value);
  save_dependencies(save.array, terms.after);
  if (!save.name) return;
  db_.query("UPDATE arrays SET name=? WHERE id=?").run(*save.name, save.array.value);
  history_.known_ends().forget(save.array);
}

void Store::save(const SaveHold& save) {
  db_.query("UPDATE arrays SET held=? WHERE id=?").run(encode(save.held), save.array.value);
}

void Store::save(const SaveKeep& save) {
  const std::string key = key_of_keep(save.keep);
  if (save.keep.allocations == 0)
    db_.query("DELETE FROM meta WHERE key=?").run(key);
  else
    db_.query("INSERT OR REPLACE INTO meta VALUES(?,?)").run(key, encode(save.keep));
}

void Store::save(const SaveReader& save) {
  for (const ArrayId array : save.arrays) {
    if (save.by) {
      save_reader(array, *save.by);
    } else {
      forget_reader(array);
    }
  }
}

void Store::save_reader(ArrayId array, const ReadBy& by) {
  db_.query("INSERT OR REPLACE INTO readers VALUES(?,?,?)")
      .run(array.value, by.reader, static_cast<std::int64_t>(by.lease.count()));
}

void Store::forget_reader(ArrayId array) {
  db_.query("DELETE FROM readers WHERE array=?").run(array.value);
}

void Store::save(const SaveLeases& save) {
  leases_.add(save);
}

void Store::save(const DropLeases& save) {
  for (const TaskId task : save.tasks) leases_.remove(task);
}

void Store::save(const SaveCancelled& save) {
  for (const TaskId task : save.tasks) leases_.cancel(task);
}

void Store::save(const SavePermitted& save) {
  leases_.permit(save.task);
}

void Store::save(const SaveFailedAttempt& save) {
  ++happened_then_.tried_again[static_cast<std::size_t>(save.outcome.failure)];
  leases_.remove(save.attempt.task);
  insert_attempt(save.attempt, to_string(save.pilot), save.node, save.outcome,
                 {save.charged, save.unexplained, false});
}

void Store::insert_attempt(const AttemptId& attempt, const std::string& pilot,
                           const std::string& node, const Outcome& outcome,
                           const AttemptMarks& marks) {
  history_.known_ends().note_attempt(attempt.task.array);
  db_.query("INSERT OR REPLACE INTO attempts VALUES(?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?)")
      .run(attempt.task.array.value, attempt.task.index, attempt.number, attempt.epoch,
           static_cast<int>(outcome.failure), outcome.message, pilot, node, marks.charged,
           marks.unexplained, outcome.started ? to_microseconds(*outcome.started) : std::int64_t{0},
           to_microseconds(outcome.ended), marks.past, outcome.exit_code, outcome.signal,
           outcome.peak_memory, static_cast<std::int64_t>(outcome.cpu_time.count()),
           outcome.log.file, outcome.log.last_out, outcome.log.last_err, outcome.log.out_bytes,
           outcome.log.err_bytes, cut_of(outcome.log));
}

void Store::insert_result(ArrayId array, IndexRange range, const AttemptId& attempt,
                          const std::string& pilot, const std::string& node, const Outcome& outcome,
                          const std::string& details) {
  db_.query("INSERT INTO results VALUES(NULL,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?)")
      .run(array.value, range.first, range.last, attempt.number, static_cast<int>(outcome.failure),
           outcome.exit_code, outcome.signal, outcome.message,
           outcome.started ? to_microseconds(*outcome.started) : std::int64_t{0},
           to_microseconds(outcome.ended), pilot, node, outcome.peak_memory,
           static_cast<std::int64_t>(outcome.cpu_time.count()), outcome.log.file,
           outcome.log.last_out, outcome.log.last_err, outcome.log.out_bytes, outcome.log.err_bytes,
           cut_of(outcome.log), attempt.epoch, details);
  const std::uint64_t tasks = std::uint64_t{range.last} - range.first + 1;
  totals_then_.of(outcome.failure) += tasks;
  history_.known_ends().add(array, {outcome.failure, outcome.exit_code, outcome.signal},
                            {tasks, outcome.started, outcome.ended, range.first});
  happened_then_.ended[static_cast<std::size_t>(outcome.failure)] += tasks;
}

/// Neighbours that come in one commit may share a row.
void Store::save(const SaveResult& save) {
  leases_.over(save.attempt);
  results_.push_back(&save);
  const Outcome& outcome = save.outcome;
  if (outcome.metrics.empty()) return;
  db_.query("INSERT OR REPLACE INTO metrics VALUES(?,?,?,?,?)")
      .run(save.attempt.task.array.value, save.attempt.task.index, save.attempt.epoch,
           to_microseconds(outcome.ended), outcome.metrics);
}

void Store::save_results() {
  for (const std::vector<const SaveResult*>& run : runs_of(std::exchange(results_, {}))) {
    const SaveResult& first = *run.front();
    const IndexRange range{first.attempt.task.index, run.back()->attempt.task.index};
    if (run.size() == 1) {
      const bool has_more = first.outcome.read_bytes + first.outcome.written_bytes != 0 ||
                            first.outcome.staged_in + first.outcome.staged_out != Duration{} ||
                            first.outcome.gpu.has_value() || !first.outcome.device.empty() ||
                            !first.outcome.cpus.empty();
      insert_result(first.attempt.task.array, range, first.attempt, to_string(first.pilot),
                    first.node, first.outcome,
                    has_more && ended_well(first.outcome) ? encode_details(run) : "");
      continue;
    }
    Outcome all = first.outcome;
    for (const SaveResult* result : run) {
      all.started = std::min(*all.started, *result->outcome.started);
      all.ended = std::max(all.ended, result->outcome.ended);
      all.peak_memory = std::max(all.peak_memory, result->outcome.peak_memory);
    }
    insert_result(first.attempt.task.array, range, first.attempt, to_string(first.pilot),
                  first.node, all, encode_details(run));
  }
}

void Store::save(const SaveResults& save) {
  for (const IndexRange& range : save.indices.ranges())
    insert_result(save.array, range, {}, "", "", save.outcome, "");
}

void Store::save(const SaveArrayEnded& save) {
  // The newest of its results: one node's clock may be far behind.
  db_.query(
         "UPDATE arrays SET ended=max(1,coalesce((SELECT max(ended) FROM results WHERE "
         "array=arrays.id),1)) WHERE id=?")
      .run(save.array.value);
}

void Store::save(const SaveAllocation& save) {
  const Allocation& a = save.allocation;
  const auto time = [](const std::optional<Time>& t) {
    return t ? to_microseconds(*t) : std::int64_t{0};
  };
  db_.query("INSERT OR REPLACE INTO allocations VALUES(?,?,?,?,?,?,?,?,?,?,?,?)")
      .run(a.id.name, a.site, a.shape, static_cast<int>(a.state), a.number,
           to_microseconds(a.opened), time(a.running_since), time(a.ended),
           static_cast<int>(a.cause), a.reason, a.cancel_asked, a.pilots_seen);
  if (a.state == AllocationState::Ended) {
    db_.query("DELETE FROM allocation_terms WHERE name=?").run(a.id.name);
  } else {
    db_.query("INSERT OR REPLACE INTO allocation_terms VALUES(?,?)")
        .run(a.id.name, encode_terms(a));
  }
}

// Forgets what ended long ago.

namespace {

// What a commit may take away, so that leases and results need not wait for long behind it.
constexpr std::uint64_t kPrunedAtOnce = 50'000;

}  // namespace

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
    const Totals gone = history_.totals(id);
    rows += gone.done + gone.failed + gone.cancelled;
    left.done -= gone.done;
    left.failed -= gone.failed;
    left.cancelled -= gone.cancelled;
    pruned_array = std::max(pruned_array, last_id_of(db_, id.value));
    {
      sqlite::Statement last = db_.query("SELECT max(sequence) FROM results WHERE array=?");
      last.bind(id.value).step();
      pruned = std::max(pruned, static_cast<std::uint64_t>(last.number(0)));
    }
    for (const char* statement :
         {"DELETE FROM results WHERE array=?", "DELETE FROM attempts WHERE array=?",
          "DELETE FROM readers WHERE array=?", "DELETE FROM needs_before WHERE array=?",
          "DELETE FROM metrics WHERE array=?", "DELETE FROM submitted_within WHERE array=?",
          "DELETE FROM numbered WHERE array=?", "DELETE FROM items WHERE array=?",
          "DELETE FROM dependencies WHERE array=?",
          // NOLINTNEXTLINE(bugprone-suspicious-missing-comma)
          "UPDATE environments SET arrays=arrays-1 "
          "WHERE id=(SELECT environment FROM arrays WHERE id=?)",
          "DELETE FROM arrays WHERE id=?"}) {
      db_.query(statement).run(id.value);
    }
    history_.known_ends().forget(id);
  }
  const bool more = taken == arrays || taken != old.size();
  if (!more) {
    db_.query("DELETE FROM environments WHERE arrays=0").run();
    db_.query("DELETE FROM allocations WHERE ended<>0 AND ended<?").run(to_microseconds(limit));
  }
  set_meta("pruned", std::to_string(pruned));
  set_meta("pruned_array", std::to_string(pruned_array));
  transaction.commit();
  note_commit(false);
  totals_ = left;
  (void)shorten_log();  // should it fail, the next commit will try and tell
  return more;
}

}  // namespace hpcbatch::store

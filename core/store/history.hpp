// What clients ask of tasks: of those that have ended, of what a task runs, of what was asked of the
// batch systems.
#pragma once

#include "failure/failure.hpp"
#include "model/action.hpp"
#include "model/event.hpp"
#include "model/site.hpp"
#include "model/snapshot.hpp"
#include "model/task.hpp"
#include "records/usage.hpp"
#include "store/file/sqlite.hpp"
#include "store/overview.hpp"

#include <array>
#include <cstdint>
#include <functional>
#include <optional>
#include <set>
#include <string>
#include <vector>

namespace hpcbatch::store {

/// What is needed to run one task of an array.
struct StoredRecipe {
  std::string bytes;
  std::uint64_t environment{0};  ///< 0: none
};

/// One row of history: a result of one task, or of a range of tasks that never started or ended
/// well side by side.  Of those `outcome` has the first start and the last end.
struct ResultRow {
  std::uint64_t sequence{0};
  ArrayId array;
  IndexRange indices;
  std::uint32_t attempt{0};
  std::uint64_t epoch{0};
  Outcome outcome;
  std::string pilot;
  std::string node;
};

struct AttemptRow {
  std::uint32_t attempt{0};
  std::uint64_t epoch{0};
  Outcome outcome;
  std::string pilot;
  std::string node;
};

struct ArrayRow {
  ArrayId id;
  std::string client, name, tool;
  IndexSet indices;
  Needs needs;
  std::int32_t priority{0};
  std::uint32_t retries{0};
  std::uint32_t max_running{0};
  std::uint32_t give_up_at{0};
  bool gives_up_running{false};
  std::vector<Dependency> after;
  Rare<Course> course;
  Time submitted{};
  bool ended{false};
  std::string recipe;
};

struct Filter {
  std::optional<ArrayId> array;
  std::string client;  ///< empty: all
  std::optional<TaskState> state;
  std::optional<FailureChoice> failure;  ///< of what has ended
  bool printed{false};                   ///< of what has ended only what has printed anything
  std::optional<TaskId> before;          ///< ranges that begin below it; without: from the highest
  std::optional<Time> ended_since;       ///< ended then or later
  std::uint32_t limit{100};
};

/// Which submissions; what is left out admits all.
struct ArrayFilter {
  std::string client, tool;
  std::string name;                           ///< `*` and `?` as in a shell's file names
  std::optional<ArrayId> before;              ///< ids below it
  std::optional<Time> since;                  ///< submitted then or later
  std::optional<TaskState> state;             ///< of one of its tasks, that has ended
  std::optional<FailureChoice> failure;       ///< of one of its tasks
  std::string site;                           ///< where one of its tasks ended
  std::vector<ArrayId> at_site;               ///< sorted: they are at `site` now
  std::optional<std::vector<ArrayId>> among;  ///< sorted: these alone
  /// What came in one submit is one, that of which any array is admitted.
  bool whole_submits{false};
  std::uint32_t limit{100};
};

/// A submission, and how its tasks have ended so far.
struct ArrayOverview {
  ArrayRow row;
  ArrayId submit_first, submit_last;  ///< of all that came with it, in one submit with a key
  std::uint64_t tasks{0};             ///< in all
  /// Where it stands for all of its submit, of which `row` is any: names of them, a few, each once.
  std::optional<std::vector<std::string>> names;
  std::uint64_t done{0}, failed{0}, cancelled{0};
  std::optional<Time> started;     ///< the first of those that have ended
  std::optional<Time> last_ended;  ///< nothing while none has
};

struct ArrayPage {
  std::vector<ArrayOverview> arrays;  ///< newest first
  std::optional<ArrayId> next;        ///< there may be more below it
};

/// Of one submission, the tasks that failed in one way: by which signal a task was ended for its
/// memory or its time is no other way.
struct FailureGroup {
  Failure failure{};
  std::int32_t exit_code{0};  ///< of tool_failed
  std::int32_t signal{0};     ///< of tool_signal
  std::uint64_t tasks{0};
  std::uint32_t first{0};  ///< the lowest index
};

/// Of allocations of one site.
struct AllocationSums {
  std::string site;
  std::uint64_t jobs{0};
  Duration waited{}, ran{};
};

/// How long allocations of a shape ran, all together.
struct ShapeHeld {
  std::string site, shape;
  Duration ran{};
};

struct ChangeFeed {
  std::vector<ResultRow> rows;
  std::uint64_t cursor{0};
  bool pruned{false};  ///< some of what came after the cursor is gone
};

/// What people call the tasks of an array.
struct Titles {
  std::string name, tool;
};

/// What `retry` of ended tasks needs.
struct Revivable {
  std::vector<RevivedArray>
      arrays;  ///< their dependants that could not start because of them included
  std::vector<EndedArray> ended;  ///< how the arrays that those wait for have ended so far
  std::vector<ArrayId> live;      ///< of all these, those of which something had not ended
};

/// Which of the tasks that have not ended well are to run again.
struct AgainOnly {
  bool failed{false};                   ///< not what was cancelled
  std::vector<FailureChoice> failures;  ///< those that failed in one of these ways; empty: however
};

/// Who is to be told when all arrays from `first` to `last` have ended; `target` as it was written.
struct Notice {
  ArrayId first, last;
  std::string target;
};

struct Totals {
  std::uint64_t done{0}, failed{0}, cancelled{0};
  std::uint64_t& of(Failure failure);
};

/// What has happened since the store was opened: it only ever grows, whatever is retried or forgotten.
struct Happened {
  std::array<std::uint64_t, kFailures> ended{};        ///< tasks, by how
  std::array<std::uint64_t, kFailures> tried_again{};  ///< attempts that failed, by how
  records::Spread spread{};  ///< of what has ended, a little later than that
};

/// The task of a submission whose failure came first.
struct FirstFailure {
  TaskId task;
  ResultRow row;
};

/// What all arrays of one submission have come to.
struct SubmissionEnd {
  ArrayId first, last;
  std::string client, name;  ///< of the first
  Time submitted{}, ended{};
  Totals totals;
  std::optional<FirstFailure> first_failure;
};

/// Reads of what the store holds.  Used with the store, by one thread at a time; every call may throw
/// sqlite::SqlError.
class History {
 public:
  explicit History(sqlite::Connection& db) : db_(db) {}

  std::optional<StoredRecipe> recipe(ArrayId array);
  std::string item(TaskId task);
  std::string environment(std::uint64_t id);

  /// Of which something has not ended, by the name as it was submitted.
  std::vector<ArrayId> open_ones_called(const std::string& name);
  std::optional<ArrayRow> array(ArrayId id);
  /// Looks at so many of them at most that nobody waits long behind it: one costs microseconds.
  static constexpr int kArraysLookedAt = 5'000;
  ArrayPage arrays(const ArrayFilter& filter);
  std::optional<ArrayOverview> overview(ArrayId id);
  /// To be told of all that becomes of arrays beside being submitted.
  KnownEnds& known_ends() { return known_ends_; }
  /// Nothing where it was forgotten.
  std::optional<SubmissionEnd> end_of(ArrayId first, ArrayId last);
  /// Where their time went.  Of very many tasks some are looked at; while some have not ended, what
  /// was found may be as old as a hundred times what it took to find.
  TaskTimes times(const ArrayRow& array);
  /// The commonest first, and last what others have caused; 20 at most.
  std::vector<FailureGroup> failures(ArrayId id);
  std::optional<ResultRow> result(TaskId task);
  /// What a task that has ended so, or runs with a lease of that epoch, was given: its array's needs
  /// may have changed since.
  Needs needs_then(const ArrayRow& array, const ResultRow& result);
  Needs needs_then(const ArrayRow& array, std::uint64_t epoch);
  std::vector<ResultRow> results(const Filter& filter);
  /// Each of a row's tasks by itself, by index.
  std::vector<ResultRow> apart(const ResultRow& row);
  std::vector<AttemptRow> attempts(TaskId task);
  /// What the task said of itself in the attempt of that epoch; empty: nothing.
  std::string metrics(TaskId task, std::uint64_t epoch);
  /// The same of all whose last attempt ended then, the newest first, for as long as all together
  /// have no more than so many bytes.
  struct Metrics {
    std::vector<std::pair<TaskId, std::string>> tasks;
    bool is_cut{false};
  };
  Metrics metrics(Time begin, Time end, std::uint64_t most_bytes);
  ChangeFeed changes(const std::string& client, std::uint64_t after, std::uint32_t limit);
  /// Tasks that ran at a pilot and whose ends came after the cursor, each by itself, the newest first.
  /// No more than `limit` of them, and no more rows, are looked at: what is older is left out.
  ChangeFeed runs(std::uint64_t after, std::uint32_t limit);
  /// As they were submitted; nothing of an array that there is not.
  std::optional<Titles> titles(ArrayId array);
  /// What a submit with that key was given; nothing where none was taken.
  std::vector<ArrayId> ids_of_key(const std::string& client, const std::string& key);
  /// The arrays that came in one submit with the first, up to the last; nothing where it had no key.
  std::vector<ArrayId> ids_of_submit(ArrayId first, ArrayId last);
  /// The cursor behind all that has ended so far.
  std::uint64_t newest_change();
  std::vector<Allocation> allocations(std::uint32_t limit);
  /// Of those that were asked for between these times, up to `end`: how long they waited and ran.
  std::vector<AllocationSums> allocation_sums(Time begin, Time end);
  /// In that time, whenever they were asked for.
  std::vector<ShapeHeld> held(Time begin, Time end);
  /// The pilots of all attempts that are kept, as texts "ALLOCATION.RANK".  Reads all results.
  std::vector<std::string> pilots_of_results();
  std::optional<Allocation> allocation(const std::string& name);
  /// Which task a numbered array has taken that id for; none: it is an array's own, or nobody's.
  std::optional<TaskId> task_of_id(ArrayId id);
  /// How an array ended so far; nothing for an id that is unknown.
  std::optional<EndedArray> ended(ArrayId id);
  /// What was pruned had ended long ago; what waits for it, `waiting`, would have been ended then if
  /// it had failed.
  EndedArray ended_or_pruned(ArrayId id, const IndexSet& waiting);
  Totals totals(ArrayId array);
  Totals totals(ArrayId array, const IndexSet& indices);
  Revivable revivable(const std::vector<Selection>& tasks, const AgainOnly& only = {});

 private:
  ArrayOverview overview(ArrayRow row, std::vector<WayToEnd>& ends, bool whole_submit);
  EndsOfArrays ends_of(ArrayId first, ArrayId last);
  TaskTimes read_times(const ArrayRow& array);
  std::set<std::string, std::less<>> allocations_of(const std::string& site);
  bool has_ended_at(ArrayId id, const std::set<std::string, std::less<>>& allocations);
  struct Chosen {
    ArrayRow row;
    IndexSet wanted;
  };
  /// Each array once, by however many of its tasks it is named.
  std::map<ArrayId, Chosen> chosen_of(const std::vector<Selection>& tasks);
  RevivedArray read_revivable(const ArrayRow& row, const IndexSet& wanted, const AgainOnly& only);

  sqlite::Connection& db_;
  KnownEnds known_ends_;
};

/// Of ARRAY_COLUMNS.
ArrayRow read_array(sqlite::Statement& row);

}  // namespace hpcbatch::store

// What must survive: tasks, leases, results, allocations, in one SQLite file.  One thread at a time
// uses it.
#pragma once

#include "model/action.hpp"
#include "model/event.hpp"
#include "model/snapshot.hpp"
#include "store/lease_rows.hpp"
#include "store/mark.hpp"
#include "store/sqlite.hpp"

#include "hpcbatch/result.hpp"

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <thread>
#include <variant>
#include <vector>

namespace hpcbatch::store {

/// What a submission runs, opaque to the store.
struct Recipe {
  std::string bytes;
  std::shared_ptr<const std::string>
      environment{};  ///< kept once however many share it; null: none
  std::string name;
  std::string tool;
  std::vector<std::string> items;  ///< of an array with one text a task; the first has index 1
};

/// One thing to save; `recipes` belong to SaveArrays, one to each.
struct Write {
  std::variant<SaveArrays, SaveHold, SaveLeases, DropLeases, SaveCancelled, SavePermitted,
               SaveFailedAttempt, SaveResult, SaveResults, SaveArrayEnded, SaveRevived,
               SaveAllocation>
      what;
  std::vector<Recipe> recipes{};
};

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
  Time submitted{};
  bool ended{false};
  std::string recipe;
};

struct Filter {
  std::optional<ArrayId> array;
  std::string client;  ///< empty: all
  std::optional<TaskState> state;
  std::optional<TaskId> before;  ///< ranges that begin below it; without: from the highest
  std::uint32_t limit{100};
};

/// Which submissions; what is left out admits all.
struct ArrayFilter {
  std::string client, tool;
  std::string name;                           ///< `*` and `?` as in a shell's file names
  std::optional<ArrayId> before;              ///< ids below it
  std::optional<Time> since;                  ///< submitted then or later
  std::optional<TaskState> state;             ///< of one of its tasks, that has ended
  std::optional<Failure> failure;             ///< of one of its tasks
  std::string site;                           ///< where one of its tasks ended
  std::vector<ArrayId> at_site;               ///< sorted: they are at `site` now
  std::optional<std::vector<ArrayId>> among;  ///< sorted: these alone
  std::uint32_t limit{100};
};

/// A submission, and how its tasks have ended so far.
struct ArrayOverview {
  ArrayRow row;
  ArrayId submit_first, submit_last;  ///< of all that came with it, in one submit with a key
  std::uint64_t done{0}, failed{0}, cancelled{0};
  std::optional<Time> started;     ///< the first of those that have ended
  std::optional<Time> last_ended;  ///< nothing while none has
};

struct ArrayPage {
  std::vector<ArrayOverview> arrays;  ///< newest first
  std::optional<ArrayId> next;        ///< there may be more below it
};

/// Of one submission, the tasks that failed in one way.
struct FailureGroup {
  Failure failure{};
  std::int32_t exit_code{0};
  std::int32_t signal{0};
  std::uint64_t tasks{0};
  std::uint32_t first{0};  ///< the lowest index
};

struct ChangeFeed {
  std::vector<ResultRow> rows;
  std::uint64_t cursor{0};
  bool pruned{false};  ///< some of what came after the cursor is gone
};

/// What `retry` of ended tasks needs.
struct Revivable {
  std::vector<RevivedArray>
      arrays;  ///< their dependants that could not start because of them included
  std::vector<EndedArray> ended;  ///< how the arrays that those wait for have ended so far
  std::vector<ArrayId> live;      ///< of all these, those of which something had not ended
};

/// Every call may throw sqlite::SqlError; `commit` alone says whether it may be tried again.
class Store {
 public:
  ~Store();

  /// Makes the file where there is none, mode 0600.  Refused: a version that we do not know,
  /// damage, loose permissions; whatever is refused keeps its bytes.
  static Result<std::unique_ptr<Store>> open(const std::string& file);
  /// A large store is looked through on a thread of its own, until this is gone; `found` is called
  /// from there with the first damage, if there is any.  A small one was when it was opened.
  void check_beside(std::function<void(std::string)> found);
  /// The next start looks first; until then the files stay as they are.
  void note_damage(const std::string& text);

  /// All of it or nothing.  `durable` waits for the disk; without it the writes survive the end of
  /// this process, not of the machine.
  Result<void> commit(const std::vector<Write>& writes, bool durable);

  /// Counts this start of the engine, and reads what is alive.
  Snapshot begin();
  /// Nothing else may be asked of the store before the last of them was given, or this is gone.
  LiveArrays live_arrays();
  /// 32 random bytes made once: the root of all pilots' keys.
  std::string secret();

  std::optional<StoredRecipe> recipe(ArrayId array);
  std::string item(TaskId task);
  std::string environment(std::uint64_t id);

  // History, for clients.
  std::optional<ArrayRow> array(ArrayId id);
  /// Looks at so many of them at most that nobody waits long behind it: one costs microseconds.
  static constexpr int kArraysLookedAt = 5'000;
  ArrayPage arrays(const ArrayFilter& filter);
  std::optional<ArrayOverview> overview(ArrayId id);
  /// Most tasks first, the commonest 20.
  std::vector<FailureGroup> failures(ArrayId id);
  std::optional<ResultRow> result(TaskId task);
  std::vector<ResultRow> results(const Filter& filter);
  std::vector<AttemptRow> attempts(TaskId task);
  ChangeFeed changes(const std::string& client, std::uint64_t after, std::uint32_t limit);
  /// What a submit with that key was given; nothing where none was taken.
  std::vector<ArrayId> ids_of_key(const std::string& client, const std::string& key);
  /// The cursor behind all that has ended so far.
  std::uint64_t newest_change();
  std::vector<Allocation> allocations(std::uint32_t limit);
  /// The pilots of all attempts that are kept, as texts "ALLOCATION.RANK".  Reads all results.
  std::vector<std::string> pilots_of_results();
  std::optional<Allocation> allocation(const std::string& name);
  /// How an array ended so far; nothing for an id that is unknown.
  std::optional<EndedArray> ended(ArrayId id);
  struct Totals {
    std::uint64_t done{0}, failed{0}, cancelled{0};
    std::uint64_t& of(Failure failure);
  };
  /// Of all tasks.
  const Totals& totals() const { return totals_; }
  Totals totals(ArrayId array);
  Totals totals(ArrayId array, const IndexSet& indices);
  /// `failed_only`: not what was cancelled.
  Revivable revivable(const std::vector<Selection>& tasks, bool failed_only = false);

  /// A copy in a file that is not there yet, beside whatever else is asked of this store.
  Result<void> begin_copy(const std::string& file);
  /// A part of it; true: it is whole, and on the disk.  What failed is removed.
  Result<bool> copy_more();

  /// Forgets arrays that ended before `limit`, with their history: so many at a time.  False: there
  /// is nothing more.
  bool prune(Time limit, std::uint32_t arrays);

 private:
  explicit Store(const std::string& file)
      : file_(file), mark_(file + "-mark"), db_(file), leases_(db_) {}
  static void give_sums(const std::string& file);
  void migrate();
  void compare_with_mark(bool copy);
  void look_for_damage();
  void wait_for_disk(bool wait);
  Result<void> shorten_log();
  void move_log();
  void note_commit(bool durable);
  Error failure_of(const sqlite::SqlError& error);
  void count_results();
  void apply(const Write& write);
  void save(const SaveArrays& save, const std::vector<Recipe>& recipes);
  void save_array(const SaveArrays& save, std::size_t position, const Recipe& recipe);
  std::int64_t id_of(const std::shared_ptr<const std::string>& environment);
  void count_arrays_of_environment();
  void save(const SaveHold& save);
  void save(const SaveLeases& save);
  void save(const DropLeases& save);
  void save(const SaveCancelled& save);
  void save(const SavePermitted& save);
  void save(const SaveFailedAttempt& save);
  void save(const SaveResult& save);
  void save(const SaveResults& save);
  void save(const SaveArrayEnded& save);
  void save(const SaveRevived& save);
  void save(const SaveAllocation& save);
  struct AttemptMarks {
    bool charged{false}, unexplained{false};
    bool past{false};  ///< of a life before the task was retried by hand
  };
  void insert_attempt(const AttemptId& attempt, const std::string& pilot, const std::string& node,
                      const Outcome& outcome, const AttemptMarks& marks);
  void withdraw_results(ArrayId array, const IndexRange& range);
  void keep_as_attempts(const ResultRow& row, const std::string& details, const IndexRange& range);
  void insert_result(ArrayId array, IndexRange range, const AttemptId& attempt,
                     const std::string& pilot, const std::string& node, const Outcome& outcome,
                     const std::string& details);
  void save_results();
  std::string meta(const char* key);
  void set_meta(const char* key, const std::string& value);
  ArrayRow read_array(sqlite::Statement& row);
  ArrayOverview overview(ArrayRow row, std::vector<Failure>& failures);
  std::set<std::string, std::less<>> allocations_of(const std::string& site);
  bool has_ended_at(ArrayId id, const std::set<std::string, std::less<>>& allocations);
  EndedArray ended_or_pruned(ArrayId id, const IndexSet& waiting);
  enum class Of : std::uint8_t { All, Failed, Dependants };
  RevivedArray read_revivable(const ArrayRow& row, const IndexSet& wanted, Of which);

  std::string file_;
  Mark mark_;
  sqlite::Connection db_;
  LeaseRows leases_;
  bool leases_known_{false};  ///< as the file has them
  Totals totals_;
  Totals totals_then_;  ///< when the transaction that is under way commits
  struct Environment {
    std::shared_ptr<const std::string> bytes;
    std::int64_t id{0};
    std::uint64_t arrays{0};  ///< that have it and are not counted in the file
  };
  Environment environment_;                 ///< of the array saved last, of the transaction
  std::vector<const SaveResult*> results_;  ///< of the transaction, not written yet
  std::optional<bool> durable_;             ///< how the connection is set now
  std::uint64_t highest_{0};                ///< id of an array that was saved, or tried to be
  int log_{-1};                             ///< descriptor of the write-ahead log
  bool is_open_{false};                     ///< all was found to be well
  bool log_begins_{false};                  ///< with the next commit, where the old one lies
  struct Copy {
    std::string file;
    std::unique_ptr<sqlite::Copying> copying;
  };
  std::optional<Copy> copy_;
  std::atomic<bool> checked_{false};  ///< beside: the database's file must not change meanwhile
  std::atomic<bool> give_up_check_{false};
  std::jthread check_;
};

}  // namespace hpcbatch::store

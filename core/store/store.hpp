// What must survive: tasks, leases, results, allocations, in one SQLite file.  One thread at a time
// uses it.
#pragma once

#include "model/action.hpp"
#include "model/event.hpp"
#include "model/rare.hpp"
#include "model/snapshot.hpp"
#include "store/file/mark.hpp"
#include "store/file/sqlite.hpp"
#include "store/history.hpp"
#include "store/lease_rows.hpp"
#include "store/record_rows.hpp"

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
  struct Words {
    std::string name;
    std::string tool;
    std::vector<std::string> items;  ///< of an array with one text a task; the first has index 1
  };
  Rare<Words> words{};
};

/// One thing to save; `recipes` belong to SaveArrays, one to each.
struct Write {
  std::variant<SaveArrays, SaveHold, SaveTerms, SaveLeases, DropLeases, SaveCancelled,
               SavePermitted, SaveFailedAttempt, SaveResult, SaveResults, SaveArrayEnded,
               SaveRevived, SaveAllocation, SaveKeep, SaveReader>
      what;
  std::vector<Recipe> recipes{};
  std::vector<std::string> notify{};  ///< of SaveArrays: who is told when all of them have ended
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

  /// The first of the files that is not where it was, or is another: removed, or put back, by someone
  /// else.  What is open goes on, but nobody finds it again.  Empty: all are there.
  std::string missing_part() const;

  /// All of it or nothing.  `durable` waits for the disk; without it the writes survive the end of
  /// this process, not of the machine.
  Result<void> commit(const std::vector<Write>& writes, bool durable);

  /// What the mark says: how far ids and starts have come.
  const MarkText& known() const { return mark_.now; }
  /// The engine's, made once.
  std::string name() { return meta("engine"); }
  /// Before `begin`: ids up to that and so many starts were given by a later state of this store; true:
  /// by none that it knows.
  bool were_given(std::uint64_t highest, std::uint64_t starts);
  /// Counts this start of the engine, and reads what is alive.
  Snapshot begin();
  /// Nothing else may be asked of the store before the last of them was given, or this is gone.
  LiveArrays live_arrays();
  /// 32 random bytes made once: the root of all pilots' keys.
  std::string secret();

  /// Lives as long as this.
  History& history() { return history_; }
  /// Of all tasks.
  const Totals& totals() const { return totals_; }
  const Happened& happened() const { return happened_; }

  /// What runs used.  Lives as long as this.
  RecordRows& records() { return records_; }
  /// Adds what has ended to the records, of about so many tasks; true: there is more.
  bool learn(std::uint64_t tasks);

  /// Who has not been told yet.
  std::vector<Notice> notices();
  /// They were told.
  void forget(const std::vector<Notice>& notices);

  /// A copy in a file that is not there yet, beside whatever else is asked of this store.
  Result<void> begin_copy(const std::string& file);
  /// A part of it; true: it is whole, and on the disk.  What failed is removed.
  Result<bool> copy_more();

  /// Forgets arrays that ended before `limit`, with their history: so many at a time.  False: there
  /// is nothing more.
  bool prune(Time limit, std::uint32_t arrays);

 private:
  explicit Store(const std::string& file)
      : file_(file),
        mark_(file + "-mark"),
        db_(file),
        leases_(db_),
        history_(db_),
        records_(db_, history_) {}
  static void give_sums(const std::string& file);
  void migrate();
  void compare_with_mark(bool copy);
  void look_for_damage();
  std::optional<Error> note_parts();
  void wait_for_disk(bool wait);
  Result<void> shorten_log();
  void move_log();
  void note_commit(bool durable);
  Error failure_of(const sqlite::SqlError& error);
  void count_results();
  void apply(const Write& write);
  void save(const SaveArrays& save, const Write& with);
  void save_array(const SaveArrays& save, std::size_t position, const Recipe& recipe);
  std::int64_t id_of(const std::shared_ptr<const std::string>& environment);
  void count_arrays_of_environment();
  void save(const SaveHold& save);
  void save(const SaveTerms& save);
  void save_dependencies(ArrayId id, const std::vector<Dependency>& after);
  /// What has ended or is leased is shown with those it had.
  void change_needs(ArrayId array, const Needs& needs);
  void save(const SaveKeep& save);
  void save(const SaveReader& save);
  void save_reader(ArrayId array, const ReadBy& by);
  void forget_reader(ArrayId array);
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

  std::string file_;
  Mark mark_;
  sqlite::Connection db_;
  LeaseRows leases_;
  History history_;
  RecordRows records_;
  bool leases_known_{false};  ///< as the file has them
  Totals totals_;
  Totals totals_then_;  ///< when the transaction that is under way commits
  Happened happened_, happened_then_;
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
  struct Part {
    std::string file;
    std::uint64_t device{0}, inode{0};
  };
  std::vector<Part> parts_;  ///< as they were opened
  bool log_begins_{false};   ///< with the next commit, where the old one lies
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

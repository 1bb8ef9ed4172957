// Leases as they lie in the store: a row for a run of neighbours that were leased to one pilot
// together, with epochs that count on.  The end of one of them writes nothing here, because its
// result says that it is over; the row goes with the last of them.
#pragma once

#include "model/action.hpp"
#include "model/snapshot.hpp"
#include "store/file/sqlite.hpp"

#include <map>
#include <string>
#include <vector>

namespace hpcbatch::store {

/// Every change belongs into a transaction.  Where that is rolled back, `load` again before the
/// next.
class LeaseRows {
  struct Row {
    std::uint32_t last{};
    std::uint32_t attempt{};
    std::uint64_t epoch{};  ///< of the first
    std::string pilot;
    bool cancelled{false};
    bool permitted{false};  ///< to publish
    IndexSet over;          ///< not written: their results are there
  };

 public:
  explicit LeaseRows(sqlite::Connection& db) : db_(db) {}

  static constexpr const char* kLayout =
      "CREATE TABLE leases(array INTEGER, first INTEGER, last INTEGER, attempt INTEGER, epoch "
      "INTEGER, pilot BLOB, cancelled INTEGER, permitted INTEGER, PRIMARY KEY(array, first)) "
      "WITHOUT ROWID;";

  void load();
  std::vector<StoredLease> all() const;

  void add(const SaveLeases& leases);
  /// Its result is being saved.
  void over(const AttemptId& attempt);
  /// It is over, and no result says so.
  void remove(TaskId task);
  void cancel(TaskId task) { mark(task, &Row::cancelled); }
  void permit(TaskId task) { mark(task, &Row::permitted); }
  /// The results of these go: they no longer say that the tasks' leases are over.
  void withdraw(ArrayId array, IndexRange range);

 private:
  using Rows = std::map<TaskId, Row>;  // by their first tasks; they do not overlap

  void mark(TaskId task, bool Row::*what);
  void look_for_results(TaskId first, Row& row);
  static bool is_over(Rows::const_iterator at);
  Rows::iterator row_with(TaskId task);
  /// The first row that holds one of the range, or begins behind it.
  Rows::iterator first_with(ArrayId array, IndexRange range);
  void insert(TaskId first, Row row);
  Rows::iterator erase(Rows::iterator at);
  /// Takes a range out of its row; what is left of that stays, as one row or two.
  Row carve(Rows::iterator at, IndexRange range);

  sqlite::Connection& db_;
  Rows rows_;
};

}  // namespace hpcbatch::store

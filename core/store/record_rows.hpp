// What runs used, added up from the results in the order in which they came: no result counts
// twice, and none is forgotten where the engine dies in between, since the place up to which they
// have been added up is kept with the sums.
#pragma once

#include "records/usage.hpp"
#include "store/file/sqlite.hpp"
#include "store/history.hpp"

#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

namespace hpcbatch::store {

/// Used with the store, by one thread at a time; every call may throw sqlite::SqlError.
class RecordRows {
 public:
  /// By what an array's name, tool and recipe say.
  using KindOf = std::function<std::string(const ArrayRow&)>;

  RecordRows(sqlite::Connection& db, History& history) : db_(db), history_(history) {}

  static constexpr std::int32_t kDaysKept = 400;
  /// More kinds than these are one together.
  static constexpr std::size_t kMostKinds = 1000;
  /// In few words: that all tables' descriptions lie on the first page makes them harder to lose.
  static constexpr const char* kLayout =
      "CREATE TABLE IF NOT EXISTS usage(day,kind,site,client,sums,PRIMARY "
      "KEY(day,kind,site,client))"
      "WITHOUT ROWID;"
      "CREATE TABLE IF NOT EXISTS profiles(kind PRIMARY KEY,touched,bytes)WITHOUT ROWID;";

  /// Without it nothing is learned.  `now` is asked on the store's thread.
  void begin_learning(KindOf kind_of, std::function<Time()> now) {
    kind_of_ = std::move(kind_of);
    now_ = std::move(now);
  }
  /// What has ended since the last call, of about so many tasks; true: there is more.  This and what
  /// follows belong into a transaction.
  /// `spread`: is added to, where one is given.
  bool learn(std::uint64_t tasks, records::Spread* spread = nullptr);
  /// All of it.
  void learn_all();
  /// What there is by now has been learned already.
  void skip_all();

  /// Of days since 1970, both included.
  std::vector<std::pair<records::Cell, records::Usage>> usage(std::int32_t first,
                                                              std::int32_t last);
  /// With what was learned long ago counting less.
  std::vector<std::pair<std::string, records::Profile>> profiles();

 private:
  void add(const records::Tally& tally, Time now);
  bool is_known_kind(const std::string& kind);
  std::size_t count_of_kinds();

  sqlite::Connection& db_;
  History& history_;
  KindOf kind_of_;
  std::function<Time()> now_;
};

}  // namespace hpcbatch::store

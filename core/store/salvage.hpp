// What can still be read of a damaged store.  The store itself is only read.
#pragma once

#include "hpcbatch/result.hpp"
#include "store/file/sqlite.hpp"

#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

namespace hpcbatch::store {

struct StoreReport {
  std::vector<std::string> faults;  ///< one sentence each; none where all is well
  /// By table: how many can be read; none of a damaged store that was only looked through.
  std::vector<std::pair<std::string, std::uint64_t>> rows;
  std::uint64_t mended{0};  ///< pages of which one bit was wrong, and is known
  bool is_good() const { return faults.empty(); }
};

/// Told now and then how far a long look has come: so many of so many `what`; of 0: nobody knows of
/// how many.
using SalvageSaid =
    std::function<void(const std::string& what, std::uint64_t done, std::uint64_t of)>;

/// Works on a copy in `folder`, which is removed; so much room is needed there.  No engine may use
/// the store meanwhile.
Result<StoreReport> look_through(const std::string& file, const std::string& folder,
                                 const SalvageSaid& said = {});

/// Whether what an array runs needs a text for each of its tasks.
using HasItems = std::function<bool(const std::string& recipe)>;

/// The same, and writes what can be read to a new store, which must not be there yet; twice the
/// store's room is needed beside it.  What has lost a part of what it would run is left out, and
/// where anything may be missing all that had not ended is held.  Fails where nothing can be read.
Result<StoreReport> salvage(const std::string& file, const std::string& into,
                            const HasItems& has_items, const SalvageSaid& said = {});

// What was saved of a damaged store must not run as something that nobody asked for.

/// Adds to the report which ids up to `highest`, or to the highest that anything names, are not
/// there.  What was pruned has gone as it should; no id is told apart below the highest of that.
/// To be called before `hold_back`, which makes it so that none is given again.
void name_missing(sqlite::Connection& saved, std::uint64_t highest, StoreReport& report);

/// Within the caller's transaction: takes out the arrays that have lost a part of what they run,
/// and what belongs to arrays that are not there; holds what has not ended.  `report` is told of
/// both.
void hold_back(sqlite::Connection& saved, const HasItems& has_items, StoreReport& report);

// Database and log of a damaged store as one file, page by page, as far as their sums are right.

/// `to`, which is made, is the database with all of its log in it, in rollback mode; a page that
/// cannot be believed has a wrong sum there.  Throws where it cannot be written.
void put_together(const std::string& file, const std::string& to, bool has_sums,
                  StoreReport& report, const SalvageSaid& said);

}  // namespace hpcbatch::store

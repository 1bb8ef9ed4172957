// What was saved of a damaged store must not run as something that nobody asked for.
#pragma once

#include "store/file/sqlite.hpp"
#include "store/salvage.hpp"

#include <cstdint>

namespace hpcbatch::store {

/// Adds to the report which ids up to `highest`, or to the highest that anything names, are not
/// there.  What was pruned has gone as it should; no id is told apart below the highest of that.
/// To be called before `hold_back`, which makes it so that none is given again.
void name_missing(sqlite::Connection& saved, std::uint64_t highest, StoreReport& report);

/// Within the caller's transaction: takes out the arrays that have lost a part of what they run,
/// and what belongs to arrays that are not there; holds what has not ended.  `report` is told of
/// both.
void hold_back(sqlite::Connection& saved, const HasItems& has_items, StoreReport& report);

}  // namespace hpcbatch::store

// What was saved of a damaged store must not run as something that nobody asked for.
#pragma once

#include "store/file/sqlite.hpp"
#include "store/salvage.hpp"

namespace hpcbatch::store {

/// Within the caller's transaction: takes out the arrays that have lost a part of what they run,
/// and what belongs to arrays that are not there; holds what has not ended.  `report` is told of
/// both.
void hold_back(sqlite::Connection& saved, const HasItems& has_items, StoreReport& report);

}  // namespace hpcbatch::store

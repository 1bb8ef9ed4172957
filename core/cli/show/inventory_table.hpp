// Sites, allocations, pilots, tools and the results of checks as tables.
#pragma once

#include "cli/parse/command.hpp"
#include "cli/show/table.hpp"

#include <boost/json/array.hpp>

namespace hpcbatch {

/// `sites`, ...: in targets and answers.
const char* word_of(InventoryCommand::Kind kind);
Table inventory_table(InventoryCommand::Kind kind, const boost::json::array& things);
/// Of `{"check", "ok", "text"}`.
Table check_table(const boost::json::array& checks);

}  // namespace hpcbatch

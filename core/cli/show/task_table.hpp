// Tasks as lines of a table, wherever some are listed.
#pragma once

#include "cli/show/table.hpp"

#include <boost/json/object.hpp>

namespace hpcbatch {

Table task_table();
/// `task` is a summary.
void add_task_row(Table& table, const boost::json::object& task);

}  // namespace hpcbatch

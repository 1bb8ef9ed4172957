// The items of an array: texts, rows of columns, or objects with fields.
#pragma once

#include "api/read/read_task.hpp"

#include <boost/json/value.hpp>

#include <string>
#include <vector>

namespace hpcbatch {

/// Names for columns that have none of their own.  Throws BadRequest.
std::vector<std::string> read_columns(const boost::json::value& value, const std::string& where);
/// `whole_texts`: what stands for each as a whole, or none.  Throws BadRequest.
void read_items_into(TaskRequest& task, const boost::json::value& value,
                     const std::vector<std::string>& columns,
                     const std::vector<std::string>& whole_texts, const std::string& where);

/// One of the task's items, from 1.
Item item_at(const TaskRequest& task, std::size_t index);
/// One that has the columns that all have; without items it has none.
Item example_item(const TaskRequest& task);
/// Throws BadRequest where an item would be put into the text that a shell runs: a file that is
/// called `$(rm x)` would be.  The item says which columns there are; `what` names the task.
void check_no_shell_reads_items(const std::vector<std::string>& command, const Item& item,
                                const std::string& what);

}  // namespace hpcbatch

// Tasks as lines of a table, wherever some are listed.
#pragma once

#include "cli/show/table.hpp"

#include <boost/json/object.hpp>

namespace hpcbatch {

Table task_table();
/// `task` is a summary.
void add_task_row(Table& table, const boost::json::object& task);

/// Makes one line of neighbours that ended alike on different pilots.  Lines come from the highest
/// index down; those that show an item stay as they are.
class TaskLines {
 public:
  explicit TaskLines(Table& table) : table_(table) {}
  void add(const boost::json::object& task);
  /// The last line, too.
  void finish();
  std::size_t size() const { return size_; }

 private:
  Table& table_;
  boost::json::object last_;  ///< not in the table yet; empty: none
  std::size_t size_{0};
};

}  // namespace hpcbatch

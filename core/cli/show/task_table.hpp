// Tasks as lines of a table, wherever some are listed.
#pragma once

#include "cli/show/table.hpp"
#include "model/index_set.hpp"

#include <boost/json/object.hpp>

#include <functional>
#include <optional>
#include <string>

namespace hpcbatch {

/// Asks the engine for that target.
using AskEngine = std::function<boost::json::object(const std::string& target)>;

/// Those of a submission that the engine lists where it is asked so: `state=failed`, `printed=1`.
IndexSet indices_where(const AskEngine& ask, const std::string& submission,
                       const std::string& question);
/// `12.3-9` of submission 12; nothing where it is another's.
std::optional<IndexSet> indices_of(const std::string& id, const std::string& submission);

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

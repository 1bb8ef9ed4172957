#include "cli/show/task_table.hpp"

#include "cli/show/values.hpp"

namespace hpcbatch {

void add_task_row(Table& table, const boost::json::object& task) {
  const std::string tasks = text_at(task, "tasks");
  const std::string name = text_at(task, "name");
  table.add({text_at(task, "id"), text_at(task, "state"), tasks == "1" ? "" : tasks,
             text_at(task, "exit_code"),
             text_at(task, "failure") == "ok" ? "" : text_at(task, "failure"),
             text_at(task, "item"), name.empty() ? text_at(task, "tool") : name});
}

Table task_table() {
  using Side = Table::Side;
  return Table({{"ID"},
                {"STATE"},
                {"TASKS", Side::Right},
                {"EXIT", Side::Right},
                {"FAILURE"},
                {"ITEM"},
                {"NAME"}});
}

}  // namespace hpcbatch

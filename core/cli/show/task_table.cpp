#include "cli/show/task_table.hpp"

#include "cli/show/values.hpp"
#include "model/index_set.hpp"

#include <boost/json/array.hpp>

#include <optional>
#include <string>

namespace hpcbatch {
namespace {

namespace json = boost::json;

constexpr std::size_t kTasksOnAPage = 100'000;

}  // namespace

std::optional<IndexSet> indices_of(const std::string& id, const std::string& submission) {
  const std::size_t dot = id.find('.');
  if (dot == std::string::npos || id.compare(0, dot, submission) != 0) return std::nullopt;
  return parse_index_set(id.substr(dot + 1));
}

IndexSet indices_where(const AskEngine& ask, const std::string& submission,
                       const std::string& question) {
  IndexSet all;
  const std::string target =
      "/v1/tasks?limit=" + std::to_string(kTasksOnAPage) + "&array=" + submission + "&" + question;
  std::string before;
  for (;;) {
    std::string page = target;
    if (!before.empty()) page.append("&before=").append(before);
    const json::object answer = ask(page);
    const json::array* tasks = array_at(answer, "tasks");
    if (tasks == nullptr) return all;
    for (const json::value& task : *tasks) {
      if (!task.is_object()) continue;
      if (const auto indices = indices_of(text_at(task.get_object(), "id"), submission))
        all.add(*indices);
    }
    if (tasks->size() < kTasksOnAPage || !tasks->back().is_object()) return all;
    before = text_at(tasks->back().get_object(), "id");
  }
}

void add_task_row(Table& table, const boost::json::object& task) {
  const std::string tasks = text_at(task, "tasks");
  const std::string name = text_at(task, "name");
  table.add({text_at(task, "id"), text_at(task, "state"), tasks == "1" ? "" : tasks,
             text_at(task, "exit_code"),
             text_at(task, "failure") == "ok" ? "" : text_at(task, "failure"),
             text_at(task, "item"), name.empty() ? text_at(task, "tool") : name});
}

namespace {

/// The neighbours that a line stands for; nothing where it is no task of an array.
std::optional<IndexRange> range_of(const std::string& id) {
  const std::size_t dot = id.find('.');
  const auto indices =
      dot == std::string::npos ? std::nullopt : parse_index_set(id.substr(dot + 1));
  return indices ? std::optional(indices->ranges().front()) : std::nullopt;
}

std::string array_of(const std::string& id) {
  return id.substr(0, id.find('.'));
}

bool look_alike(const boost::json::object& a, const boost::json::object& b) {
  for (const char* key : {"state", "exit_code", "failure", "name", "tool"}) {
    if (text_at(a, key) != text_at(b, key)) return false;
  }
  return !a.contains("item") && !b.contains("item");
}

}  // namespace

void TaskLines::add(const boost::json::object& task) {
  const std::string id = text_at(task, "id"), last = text_at(last_, "id");
  const auto below = range_of(id), above = range_of(last);
  const bool touches = below && above && array_of(id) == array_of(last) &&
                       below->last + 1 == above->first && look_alike(task, last_);
  if (!touches) {
    finish();
    last_ = task;
    return;
  }
  last_["id"] =
      array_of(id) + "." + std::to_string(below->first) + "-" + std::to_string(above->last);
  last_["tasks"] = number_at(last_, "tasks") + number_at(task, "tasks");
}

void TaskLines::finish() {
  if (last_.empty()) return;
  add_task_row(table_, last_);
  last_.clear();
  ++size_;
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

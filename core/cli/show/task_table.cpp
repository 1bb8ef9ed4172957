#include "cli/show/task_table.hpp"

#include "cli/show/values.hpp"

#include <charconv>
#include <cstdint>
#include <optional>
#include <string>

namespace hpcbatch {

void add_task_row(Table& table, const boost::json::object& task) {
  const std::string tasks = text_at(task, "tasks");
  const std::string name = text_at(task, "name");
  table.add({text_at(task, "id"), text_at(task, "state"), tasks == "1" ? "" : tasks,
             text_at(task, "exit_code"),
             text_at(task, "failure") == "ok" ? "" : text_at(task, "failure"),
             text_at(task, "item"), name.empty() ? text_at(task, "tool") : name});
}

namespace {

struct Range {
  std::string array;
  std::uint64_t first{0}, last{0};
};

/// Nothing for a single task, or what is no task of an array.
std::optional<Range> range_of(const std::string& id) {
  const std::size_t dot = id.find('.');
  if (dot == std::string::npos) return std::nullopt;
  Range range{id.substr(0, dot), 0, 0};
  const char* end = id.data() + id.size();
  const auto first = std::from_chars(id.data() + dot + 1, end, range.first);
  if (first.ec != std::errc{}) return std::nullopt;
  range.last = range.first;
  if (first.ptr == end) return range;
  if (*first.ptr != '-') return std::nullopt;
  const auto last = std::from_chars(first.ptr + 1, end, range.last);
  return last.ec == std::errc{} && last.ptr == end ? std::optional(range) : std::nullopt;
}

bool look_alike(const boost::json::object& a, const boost::json::object& b) {
  for (const char* key : {"state", "exit_code", "failure", "name", "tool"}) {
    if (text_at(a, key) != text_at(b, key)) return false;
  }
  return !a.contains("item") && !b.contains("item");
}

}  // namespace

void TaskLines::add(const boost::json::object& task) {
  const auto below = range_of(text_at(task, "id"));
  const auto above = range_of(text_at(last_, "id"));
  const bool touches = below && above && below->array == above->array &&
                       below->last + 1 == above->first && look_alike(task, last_);
  if (!touches) {
    finish();
    last_ = task;
    return;
  }
  last_["id"] =
      below->array + "." + std::to_string(below->first) + "-" + std::to_string(above->last);
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

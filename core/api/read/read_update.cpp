#include "api/read/read_update.hpp"

#include "api/read/read_request.hpp"
#include "api/read/read_task.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <boost/json/array.hpp>
#include <boost/json/object.hpp>

#include <algorithm>
#include <array>
#include <string_view>
#include <utility>

namespace hpcbatch {
namespace {

namespace json = boost::json;

constexpr std::array<std::string_view, 19> kCanChange{
    "cpus",        "memory",       "disk",        "gpus",     "time",   "site",      "tags",
    "priority",    "retries",      "max_running", "name",     "after",  "after_any", "after_each",
    "after_start", "after_failed", "begin",       "deadline", "requeue"};

bool is_wait(std::string_view key) {
  return key.starts_with("after");
}

}  // namespace

bool can_be_updated(const std::string& key) {
  return !key.empty() && std::find(kCanChange.begin(), kCanChange.end(), key) != kCanChange.end();
}

TermsChange read_terms_change(const json::value& value) {
  if (!value.is_object() || value.get_object().empty())
    throw BadRequest("'set' must be a map of what is to change, as {\"priority\": 5}");
  json::object as_task = value.get_object();
  for (const auto& [key, said] : as_task) {
    if (can_be_updated(std::string(key))) continue;
    throw BadRequest(fmt::format("'set' has '{}'; of tasks that wait {} can be changed",
                                 std::string_view(key),
                                 fmt::join(kCanChange.begin(), kCanChange.end(), ", ")));
  }
  const json::object& said = value.get_object();
  as_task["command"] = json::array{"true"};
  TaskRequest task = read_task(as_task, "'set'");
  if (task.all_cpus || task.all_memory)
    throw BadRequest("'set': say how much; 'all' goes with a submit");
  NewArray& array = task.array;
  TermsChange change;
  if (!said.contains("cpus")) array.needs.amounts.set(kCpus, {});
  change.needs = {array.needs.amounts, array.needs.time};
  if (said.contains("site")) change.site = array.needs.site;
  if (said.contains("tags")) change.tags = array.needs.tags;
  if (said.contains("priority")) change.priority = array.priority;
  if (said.contains("retries")) change.retries = array.retries;
  if (said.contains("max_running")) change.max_running = array.max_running;
  if (said.contains("name")) change.name = task.name;
  change.begin = array.course->begin;
  change.deadline = array.course->deadline;
  if (said.contains("requeue")) change.requeue = !array.course->no_requeue;
  const bool waits =
      std::any_of(said.begin(), said.end(), [](const auto& one) { return is_wait(one.key()); });
  if (waits) change.after = std::move(array.after);
  return change;
}

}  // namespace hpcbatch

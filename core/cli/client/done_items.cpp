#include "cli/client/done_items.hpp"

#include "cli/client/named.hpp"
#include "cli/process/exit.hpp"
#include "cli/show/values.hpp"
#include "cli/tasks/left_items.hpp"
#include "model/item.hpp"

#include <boost/json/array.hpp>

#include <cstddef>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

namespace hpcbatch {
namespace {

namespace json = boost::json;

struct DoneItems {
  std::string submissions;  // their ids, as they are told
  /// How often an item has ended well, by `same_item`.
  std::unordered_map<std::string, std::size_t> times;
};

/// As much as the engine gives at once.
constexpr std::size_t kPage = 100'000;

/// A page of the lines of a submission's tasks, the next one after it with `before` as the last id
/// of it.
json::array page_of(EngineClient& client, const std::string& id, const std::string& questions) {
  json::object answer = client.get("/v1/tasks?apart=1&array=" + id + questions);
  const json::array* tasks = array_at(answer, "tasks");
  return tasks == nullptr ? json::array() : *tasks;
}

bool has_items(EngineClient& client, const std::string& id) {
  for (const json::value& task : page_of(client, id, "&limit=1")) {
    if (task.is_object() && task.get_object().contains("item")) return true;
  }
  return false;
}

Item listed_item(const json::object& task) {
  Item item(text_at(task, "item"));
  const json::object* columns = object_at(task, "columns");
  if (columns == nullptr) return item;
  for (const auto& [name, value] : *columns)
    item.add_column(std::string(name), value.is_string() ? std::string(value.get_string()) : "");
  return item;
}

void add_done(EngineClient& client, const std::string& id, DoneItems& done) {
  std::string before;
  for (;;) {
    const json::array page =
        page_of(client, id, "&state=done&limit=" + std::to_string(kPage) + before);
    for (const json::value& task : page) {
      if (task.is_object() && task.get_object().contains("item"))
        ++done.times[same_item(listed_item(task.get_object()))];
    }
    if (page.size() < kPage || !page.back().is_object()) return;
    before = "&before=" + text_at(page.back().get_object(), "id");
  }
}

DoneItems done_items(EngineClient& client, const std::vector<std::string>& submissions) {
  DoneItems done;
  for (const std::string& id : resolve_ids(client, submissions, "")) {
    const std::size_t before = done.times.size();
    add_done(client, id, done);
    if (done.times.size() == before && !has_items(client, id)) {
      throw CommandError(kExitUsage,
                         "--skip-done: the tasks of " + id +
                             " have no items that a list could be compared with; choose the tasks "
                             "that are left by their numbers, with --array");
    }
    done.submissions += (done.submissions.empty() ? "" : ", ") + id;
  }
  return done;
}

}  // namespace

bool leave_out_done(EngineClient& client, const ManyOptions& many, json::object& task) {
  if (many.skip_done.empty()) return true;
  DoneItems done = done_items(client, many.skip_done);
  return tell_left(leave_out_done(task, many, std::move(done.times)), done.submissions);
}

}  // namespace hpcbatch

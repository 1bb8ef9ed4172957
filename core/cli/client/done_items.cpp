#include "cli/client/engine_client.hpp"

#include "cli/process/process.hpp"
#include "cli/show/terminal.hpp"
#include "cli/show/values.hpp"
#include "cli/tasks/items.hpp"
#include "documents/texts.hpp"
#include "model/item.hpp"

#include <boost/json/array.hpp>
#include <boost/json/serialize.hpp>

#include <unistd.h>
#include <algorithm>
#include <csignal>
#include <cstddef>
#include <optional>
#include <set>
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
json::object page_of(EngineClient& client, const std::string& id, const std::string& questions) {
  return client.get("/v1/tasks?apart=1&array=" + id + questions);
}

bool has_items(EngineClient& client, const std::string& id) {
  const json::object page = page_of(client, id, "&limit=1");
  const Objects tasks = objects_at(page, "tasks");
  return !tasks.empty() && tasks.front().get().contains("item");
}

/// What is no UTF-8 stands there as bytes, too.
std::string exact(const json::object& object, const json::object* as_bytes, std::string_view key,
                  std::string_view key_of_bytes) {
  const std::string bytes = as_bytes == nullptr ? "" : text_at(*as_bytes, key_of_bytes);
  if (!bytes.empty()) {
    if (auto decoded = decode_base64(bytes)) return *std::move(decoded);
  }
  return text_at(object, key);
}

Item listed_item(const json::object& task) {
  Item item(exact(task, &task, "item", "item_base64"));
  const json::object* columns = object_at(task, "columns");
  if (columns == nullptr) return item;
  const json::object* as_bytes = object_at(task, "columns_base64");
  for (const auto& [name, value] : *columns)
    item.add_column(std::string(name), exact(*columns, as_bytes, name, name));
  return item;
}

void add_done(EngineClient& client, const std::string& id, DoneItems& done) {
  std::string before;
  for (;;) {
    const json::object page =
        page_of(client, id, "&state=done&limit=" + std::to_string(kPage) + before);
    const Objects tasks = objects_at(page, "tasks");
    for (const json::object& task : tasks) {
      if (task.contains("item")) ++done.times[same_item(listed_item(task))];
    }
    if (tasks.size() < kPage) return;
    before = "&before=" + text_at(tasks.back(), "id");
  }
}

/// Twice at the same time they would write the same files.
void refuse_if_it_goes_on(const json::object& submission) {
  const json::object* counts = object_at(submission, "counts");
  double open = 0;
  for (const char* state : {"waiting", "held", "running", "finishing", "unknown"})
    open += counts == nullptr ? 0 : number_at(*counts, state);
  if (open == 0) return;
  const std::string id = text_at(submission, "id");
  throw CommandError(kExitUsage, "--skip-done: of " + id + " " + whole(open) +
                                     " have not ended yet, and would run twice; `hpcbatch wait " +
                                     id + "` first, or `hpcbatch cancel " + id + "`");
}

/// What the engine tells has passed through JSON.
bool is_same(const json::array& told, const json::array& now) {
  return json::serialize(told) == valid_utf8(json::serialize(now));
}

void tell_other_command(const json::object& submission, const json::object& task) {
  const json::array* before = array_at(submission, "command");
  const json::array* now = array_at(task, "command");
  if (before == nullptr || now == nullptr || flag_at(submission, "command_cut") ||
      is_same(*before, *now))
    return;
  say("note that " + text_at(submission, "id") +
      " ran another command: " + command_at(submission, "command"));
}

/// Of those that one before has left out some may be forgotten by now.
std::optional<json::object> known_submission(EngineClient& client, const std::string& id,
                                             bool was_named) {
  const Answer answer =
      client.http().request("GET", "/v1/arrays/" + id, {}, EngineClient::kAnswerTime);
  if (answer.outcome == Exchange::Answered && answer.status == 404 && !was_named)
    return std::nullopt;
  return client.object_of(answer);
}

DoneItems done_items(EngineClient& client, const std::vector<std::string>& submissions,
                     json::object& task) {
  DoneItems done;
  std::vector<std::string> ids = resolve_ids(client, submissions, "");
  json::array follows(ids.begin(), ids.end());
  // One that has itself left out what others did stands for these too.
  std::set<std::string> seen(ids.begin(), ids.end());
  for (std::size_t at = 0; at < ids.size(); ++at) {
    const std::string id = ids[at];
    const std::optional<json::object> known = known_submission(client, id, at < follows.size());
    if (!known) continue;
    const json::object& submission = *known;
    refuse_if_it_goes_on(submission);
    if (at < follows.size()) tell_other_command(submission, task);
    for (const std::string& one : texts_at(submission, "follows"))
      if (seen.insert(one).second) ids.push_back(one);
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
  task["follows"] = std::move(follows);
  return done;
}

}  // namespace

bool leave_out_done(EngineClient& client, const ManyOptions& many, json::object& task) {
  if (many.skip_done.empty()) return true;
  DoneItems done = done_items(client, many.skip_done, task);
  return tell_left(leave_out_done(task, many, std::move(done.times)), done.submissions);
}

int exit_code_of(const json::object& task) {
  const std::string state = text_at(task, "state");
  const int signal = static_cast<int>(number_at(task, "signal"));
  const int code = static_cast<int>(number_at(task, "exit_code"));
  if (state == "done") return code;
  if (signal > 0) return 128 + signal;
  if (code != 0) return code;
  if (state == "cancelled") return 128 + SIGTERM;
  // The command itself went well, or it never ran.
  return task.contains("exit_code") ? kExitTaskFailed : kExitOwnFailure;
}

int highest_exit_code(EngineClient& client, const std::string& submission) {
  constexpr std::size_t kTasksAtOnce = 1000;
  const std::string target =
      "/v1/tasks?full=1&limit=" + std::to_string(kTasksAtOnce) + "&array=" + submission;
  int highest = 0;
  for (std::string next = target;;) {
    const json::object answer = client.get(next);
    const json::array* lines = array_at(answer, "tasks");
    if (lines == nullptr) return highest;
    for (const json::value& line : *lines)
      highest = std::max(highest, exit_code_of(line.as_object()));
    if (lines->size() < kTasksAtOnce) return highest;
    const std::string last = text_at(lines->back().as_object(), "id");
    next = target;
    // The beginning of a range.
    next.append("&before=").append(last, 0, last.find('-'));
  }
}

}  // namespace hpcbatch

// `list`, `show`, `explain`: what tasks there are, one in full, and why it is as it is.
#include "cli/describe.hpp"
#include "cli/exit.hpp"
#include "cli/session.hpp"
#include "cli/table.hpp"
#include "cli/task_table.hpp"
#include "cli/values.hpp"

#include <boost/json/array.hpp>

#include <algorithm>
#include <cstdio>
#include <limits>

#include <unistd.h>

namespace hpcbatch {
namespace {

namespace json = boost::json;

/// As much as the engine gives at once.
constexpr std::uint32_t kPage = 100'000;

std::string question_of(const ListCommand& command, std::uint64_t limit,
                        const std::string& before) {
  std::string target = "/v1/tasks?limit=" + std::to_string(limit);
  if (!command.state.empty()) target += "&state=" + encode_part(command.state);
  if (!command.array.empty()) target += "&array=" + encode_part(command.array);
  if (!command.client.empty()) target += "&client=" + encode_part(command.client);
  if (!before.empty()) target += "&before=" + encode_part(before);
  return target;
}

}  // namespace

void add_task_row(Table& table, const json::object& task) {
  const std::string tasks = text_at(task, "tasks");
  const std::string name = text_at(task, "name");
  table.add({text_at(task, "id"), text_at(task, "state"), tasks == "1" ? "" : tasks,
             text_at(task, "exit_code"),
             text_at(task, "failure") == "ok" ? "" : text_at(task, "failure"),
             name.empty() ? text_at(task, "tool") : name});
}

Table task_table() {
  using Side = Table::Side;
  return Table(
      {{"ID"}, {"STATE"}, {"TASKS", Side::Right}, {"EXIT", Side::Right}, {"FAILURE"}, {"NAME"}});
}

int list_tasks(const ListCommand& command, const Session& session) {
  EngineClient client = session.client();
  std::uint64_t left = command.all ? std::numeric_limits<std::uint64_t>::max() : command.limit;
  std::string before;
  Table table = task_table();
  bool may_be_more = false;
  while (left > 0) {
    const std::uint64_t asked = std::min<std::uint64_t>(left, kPage);
    const json::object answer = client.get(question_of(command, asked, before));
    const json::array* tasks = array_at(answer, "tasks");
    if (tasks == nullptr || tasks->empty()) {
      may_be_more = false;
      break;
    }
    for (const json::value& task : *tasks) {
      if (!task.is_object()) continue;
      if (command.json)
        print_json(task);
      else
        add_task_row(table, task.get_object());
      before = text_at(task.get_object(), "id");
    }
    may_be_more = tasks->size() >= asked;
    if (!may_be_more) break;
    left -= asked;
  }
  if (command.json) return kExitDone;
  if (!table.empty()) print(table.text());
  if (may_be_more && ::isatty(STDERR_FILENO) == 1) {
    std::fflush(stdout);
    std::fputs("there may be more: --limit N or --all\n", stderr);
  }
  return kExitDone;
}

int show_task(const ShowCommand& command, const Session& session) {
  EngineClient client = session.client();
  Answer answer =
      client.http().request("GET", "/v1/tasks/" + command.id, {}, EngineClient::kAnswerTime);
  // A number alone may be a whole array, which is no task.
  if (answer.status / 100 == 4 && command.id.find('.') == std::string::npos) {
    answer =
        client.http().request("GET", "/v1/arrays/" + command.id, {}, EngineClient::kAnswerTime);
  }
  json::object shown = client.object_of(answer);
  if (!command.json) shown.erase("trouble");
  if (command.json)
    print_json(shown);
  else
    print(describe(shown));
  return kExitDone;
}

int explain_task(const ExplainCommand& command, const Session& session) {
  EngineClient client = session.client();
  const json::object why = client.get("/v1/tasks/" + command.id + "/explain");
  if (command.json) {
    print_json(why);
    return kExitDone;
  }
  print(one_line(text_at(why, "id")) + " is " + one_line(text_at(why, "state")) + ": " +
        one_line(text_at(why, "text")) + "\n");
  if (const json::array* details = array_at(why, "details")) {
    for (const json::value& detail : *details)
      print("  " + one_line(value_on_a_line("detail", detail)) + "\n");
  }
  return kExitDone;
}

}  // namespace hpcbatch

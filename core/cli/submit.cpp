// `submit`: queues a task, an array, or a file of tasks, and prints the ids.
#include "cli/exit.hpp"
#include "cli/session.hpp"
#include "cli/submission.hpp"
#include "cli/submit_safely.hpp"
#include "cli/task_file.hpp"
#include "cli/values.hpp"

#include <boost/json/array.hpp>

#include <cstdio>
#include <optional>

namespace hpcbatch {
namespace {

namespace json = boost::json;

json::array tasks_of(const SubmitCommand& command, const std::string& directory,
                     const Interrupt& interrupt) {
  std::optional<json::array> items;
  if (!command.each.empty()) {
    items = items_of(read_input(command.each, interrupt));
    if (items->empty())
      throw CommandError(kExitUsage,
                         "--each " + command.each + " has no lines: there is nothing to run");
  }
  json::object task = task_of(command.work, directory, items ? &*items : nullptr);
  if (!command.file.empty()) {
    json::array tasks = read_tasks(command.file, interrupt);
    // What the flags say holds for each task of the file that does not say it itself.
    for (json::value& one : tasks) {
      for (const auto& entry : task) one.get_object().emplace(entry.key(), entry.value());
    }
    return tasks;
  }
  if (command.array) {
    task["array"] = command.array->indices;
    if (command.array->max_running > 0) task["max_running"] = command.array->max_running;
  }
  if (items) task["items"] = std::move(*items);
  return {std::move(task)};
}

}  // namespace

int submit_tasks(const SubmitCommand& command, const Session& session) {
  const Surroundings around = look_around();
  for (const std::string& name : around.left_out) {
    std::fprintf(stderr,
                 "hpcbatch: the variable %s is not handed on: its value is not valid UTF-8\n",
                 name.c_str());
  }
  const json::object request = submission_of(tasks_of(command, around.directory, session.interrupt),
                                             around, client_name(around.environment),
                                             command.key.empty() ? random_key() : command.key);
  EngineClient client = session.client();
  for (const std::string& id : submit_safely(client, session, request)) {
    if (command.json)
      print_json(json::object{{"id", id}});
    else
      print(id + "\n");
  }
  return kExitDone;
}

}  // namespace hpcbatch

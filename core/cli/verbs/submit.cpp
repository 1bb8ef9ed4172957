// `submit`: queues a task, an array, or a file of tasks, and prints the ids.
#include "cli/client/engine_client.hpp"
#include "cli/parse/spelled.hpp"
#include "cli/process/process.hpp"
#include "cli/show/table.hpp"
#include "cli/show/values.hpp"
#include "cli/tasks/submission.hpp"
#include "cli/verbs/verbs.hpp"
#include "model/item.hpp"
#include "model/site.hpp"

#include <hpcbatch/text.hpp>

#include <boost/json/array.hpp>
#include <boost/json/object.hpp>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <string>
#include <string_view>
#include <vector>

namespace hpcbatch {
namespace {

namespace json = boost::json;

constexpr std::chrono::minutes kLongSubmit{10};

std::string amounts_of(const json::object& needs) {
  const std::string cpus = text_at(needs, "cpus");
  std::string all = cpus + (cpus == "1" ? " cpu" : " cpus");
  for (const char* key : {"memory", "disk"}) {
    if (needs.contains(key)) all += ", " + size_at(needs, key) + " " + key;
  }
  if (const std::string gpus = gpus_at(needs, "gpus"); !gpus.empty()) all += ", GPUs: " + gpus;
  return all;
}

std::string needs_of(const json::object& trial) {
  const json::object* needs = object_at(trial, "needs");
  if (needs == nullptr) return "";
  std::string all = joined(objects_at(*needs, "one_of"), "; or ", amounts_of);
  if (all.empty()) all = amounts_of(*needs);
  if (needs->contains("nodes")) all += ", on each of " + text_at(*needs, "nodes") + " nodes";
  if (needs->contains("time")) all += ", " + duration_at(*needs, "time");
  return all;
}

std::string trial_text(std::size_t number, const json::object& trial) {
  const std::string count = text_at(trial, "tasks"), item = text_at(trial, "item");
  std::string name = text_at(trial, "name");
  if (name.empty()) name = text_at(trial, "tool");
  std::string text = "task " + std::to_string(number) + (name.empty() ? "" : " (" + name + ")");
  if (count != "1") text += ", " + count + " of them";
  text += ": " + command_at(trial, "command") + "\n";
  if (!item.empty()) text += "  the first of its items: " + item + "\n";
  text += "  needs " + needs_of(trial) + "\n";
  const std::string refusal = text_at(trial, "refusal");
  return text + (refusal.empty() ? "  fits " + text_at(trial, "fits") : "  " + refusal) + "\n";
}

/// 0 where some shape could run each task, else 2.  Throws CommandError.
int show_dry_run(EngineClient& client, const json::object& request, bool is_json) {
  const json::object answer = client.post("/v1/tasks/try", request, kLongSubmit);
  bool all_fit = true;
  std::size_t number = 0;
  for (const json::object& one : objects_at(answer, "tasks")) {
    all_fit = all_fit && !one.contains("refusal");
    show_answer(is_json, one, trial_text(++number, one));
  }
  if (number == 0) throw CommandError(kExitNoEngine, "the engine named no tasks");
  return all_fit ? kExitDone : kExitUsage;
}

/// The same tag, or another value of the same key.
bool says_the_same(const json::value& tag, const json::value& other) {
  const std::string_view one = tag.as_string();
  const std::string_view two = other.as_string();
  return one == two || (!key_of(one).empty() && key_of(one) == key_of(two));
}

/// What the flags say holds for a task of a file that does not say it itself; of tags, each.
void add_what_flags_say(json::object& task, const json::object& of_flags) {
  for (const auto& [key, value] : of_flags) {
    const auto there = task.find(key);
    if (there == task.end()) {
      task.emplace(key, value);
    } else if (key == "tags" && (there->value().is_array() || there->value().is_string())) {
      json::array tags =
          there->value().is_array() ? there->value().get_array() : json::array{there->value()};
      const json::array said = tags;
      for (const json::value& tag : value.as_array()) {
        const bool is_said = std::any_of(said.begin(), said.end(), [&](const json::value& other) {
          return other.is_string() && says_the_same(other, tag);
        });
        if (!is_said) tags.push_back(tag);
      }
      there->value() = std::move(tags);
    }
  }
}

void make_absolute(json::value& path, const std::string& from, const Items& items) {
  if (path.is_array()) {
    for (json::value& one : path.get_array()) make_absolute(one, from, items);
  } else if (path.is_string() && path.get_string() != "none" && !path.get_string().empty()) {
    path = absolute_path(from, std::string(path.get_string()), items);
  }
}

Items items_in(const json::object& task) {
  Items items;
  if (const json::array* list = array_at(task, "items")) items.items = *list;
  items.columns = texts_at(task, "columns");
  return items;
}

/// As options of the command line have them.
void make_paths_absolute(json::object& task, const std::string& directory) {
  const Items items = items_in(task);
  for (const char* key : {"directory", "stdin", "stdout", "stderr"}) {
    if (json::value* path = task.if_contains(key)) make_absolute(*path, directory, items);
  }
  for (const char* key : {"inputs", "outputs"}) {
    json::value* paths = task.if_contains(key);
    if (paths == nullptr || !paths->is_object()) continue;
    for (auto& [name, path] : paths->get_object()) make_absolute(path, directory, items);
  }
}

json::array tasks_of(const SubmitCommand& command, const std::string& directory,
                     const Interrupt& interrupt) {
  json::object task = task_of_many(command.work, command.many, directory, interrupt);
  if (command.file.empty()) return {std::move(task)};
  json::array tasks = read_tasks(command.file, interrupt);
  for (json::value& one : tasks) make_paths_absolute(one.get_object(), as_it_stands(directory));
  order_tasks(tasks, command.file == "-" ? "standard input" : command.file);
  for (json::value& one : tasks) add_what_flags_say(one.get_object(), task);
  return tasks;
}

}  // namespace

int perform(const SubmitCommand& asked, const Session& session) {
  const Surroundings around = look_around();
  // A script's are replaced by those of the command line.
  refuse_repeated(asked.work, kExitUsage);
  const SubmitCommand command =
      asked.script.empty() ? asked : with_script(asked, around, session.interrupt);
  tell_missing_folders(command.work, around.directory);
  json::array tasks = tasks_of(command, around.directory, session.interrupt);
  // A script may look at its environment.
  if (asked.script.empty() && command.file.empty())
    tell_doubt(command.work, command.many, tasks.front().as_object());
  EngineClient client = session.client();
  const auto connect = [&] {
    connect_or_start(client, session.places, session.interrupt, Lifetime::UntilIdle);
  };
  resolve_waits(client, tasks, connect);
  if (!command.many.skip_done.empty()) {
    connect();
    if (!leave_out_done(client, command.many, tasks.front().as_object())) return kExitDone;
  }
  const TaskPlaces places(tasks);
  const json::object request = submission_of(std::move(tasks), around, client_name(),
                                             command.key.empty() ? random_key() : command.key);
  if (command.print_request) {
    print_json(request);
    return kExitDone;
  }
  if (command.dry_run) {
    connect();
    return show_dry_run(client, request, command.json);
  }
  std::vector<std::string> ids;
  try {
    ids = submit_safely(client, session, request);
  } catch (const CommandError& error) {
    throw CommandError(error.exit_code(), places.with_place(command.file, error.what()));
  }
  if (!command.json) print(shortest_words(ids) + "\n");
  for (const std::string& id : ids) {
    if (command.json) print_json(json::object{{"id", id}});
  }
  if (!command.wait) return kExitDone;
  if (std::fflush(stdout) != 0)
    throw CommandError(kExitUsage, "cannot write to standard output; what was submitted, " +
                                       shortest_words(ids) + ", goes on");
  const int code =
      perform(WaitCommand{.ids = ids, .name = "", .timeout = {}, .json = command.json}, session);
  // A script's own, as with sbatch --wait.
  if (asked.script.empty() || code != kExitTaskFailed) return code;
  find_engine(client, session.places, session.interrupt);
  return highest_exit_code(client, ids.front());
}

}  // namespace hpcbatch

// `list`: submissions, or the tasks of one or of all.
#include "cli/client/engine_client.hpp"
#include "cli/process/process.hpp"
#include "cli/show/listings.hpp"
#include "cli/show/table.hpp"
#include "cli/show/terminal.hpp"
#include "cli/show/values.hpp"
#include "cli/verbs/verbs.hpp"

#include <boost/json/array.hpp>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <limits>
#include <utility>
#include <vector>

namespace hpcbatch {
namespace {

namespace json = boost::json;

/// As much as the engine gives at once.
constexpr std::uint64_t kPageOfTasks = 100'000;
constexpr std::uint64_t kPage = 1000;
constexpr std::uint64_t kSubmissions = 20;
constexpr std::uint64_t kTasks = 50;

double now() {
  return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
}

std::string with(std::string target,
                 const std::vector<std::pair<const char*, std::string>>& questions) {
  for (const auto& [key, value] : questions) {
    if (value.empty()) continue;
    target += target.find('?') == std::string::npos ? "?" : "&";
    target += std::string(key) + "=" + encode_part(value);
  }
  return target;
}

/// Also where nobody watches: what counts the lines must not take them for all.
void say_there_may_be_more() {
  std::fflush(stdout);
  say("there may be more: -n N or --all");
}

/// A program takes the tasks of a submission that it names for all there are.
std::uint64_t most_lines(const ListCommand& command, std::uint64_t for_people) {
  const bool is_whole = command.all || (command.json && !command.ids.empty() && !command.limit);
  return is_whole ? std::numeric_limits<std::uint64_t>::max() : command.limit.value_or(for_people);
}

/// How many lines came of it.
std::uint64_t show_task(const ListCommand& command, const json::object& task, TaskLines& lines) {
  // An older engine knows no such choice.
  const bool is_word = !command.failure.empty() && command.failure.find(':') == std::string::npos;
  if (is_word && text_at(task, "failure") != command.failure) return 0;
  if (command.json) {
    print_json(task);
    return 1;
  }
  const std::size_t before = lines.size();
  lines.add(task);
  return lines.size() - before;
}

/// Of one submission, or of all; takes its lines off `left`.  Returns whether there may be more.
bool add_tasks_of(const ListCommand& command, EngineClient& client, const std::string& array,
                  std::uint64_t& left, TaskLines& lines) {
  std::string before;
  bool may_be_more = left == 0;
  // Whether there is such a one is said also where its lines are not wanted any more.
  if (left == 0) client.get("/v1/arrays/" + array);
  // Many that ended alike are one line for people.
  std::uint64_t page = std::clamp(left, kPage, kPageOfTasks);
  while (left > 0) {
    const std::uint64_t asked = command.json ? std::min(left, kPageOfTasks) : page;
    page = std::min(4 * page, kPageOfTasks);
    const json::object answer = client.get(with("/v1/tasks", {{"limit", std::to_string(asked)},
                                                              {"state", command.state},
                                                              {"failure", command.failure},
                                                              {"array", array},
                                                              {"client", command.client},
                                                              {"apart", command.json ? "1" : ""},
                                                              {"before", before}}));
    const Objects tasks = objects_at(answer, "tasks");
    may_be_more = tasks.size() >= asked;
    for (const json::object& task : tasks) {
      before = text_at(task, "id");
      left -= show_task(command, task, lines);
      if (left == 0) return true;
    }
    if (!may_be_more) break;
  }
  return may_be_more;
}

int list_tasks_of(const ListCommand& command, EngineClient& client,
                  const std::vector<std::string>& arrays) {
  std::uint64_t left = most_lines(command, kTasks);
  TaskLines lines;
  bool may_be_more = false;
  for (const std::string& array : arrays)
    may_be_more = add_tasks_of(command, client, array, left, lines) || may_be_more;
  if (left > 0 && !command.json) lines.finish();
  if (lines.size() > 0) print(lines.table().text(columns_of_output()));
  if (may_be_more) say_there_may_be_more();
  return kExitDone;
}

int list_submissions(const ListCommand& command, EngineClient& client) {
  std::uint64_t left = most_lines(command, kSubmissions);
  std::string before;
  std::vector<json::object> found;
  const std::string since = command.since ? std::to_string(*command.since) : std::string();
  do {
    json::object answer =
        client.get(with("/v1/arrays", {{"limit", std::to_string(std::min(left, kPage))},
                                       {"per", command.json ? "" : "submit"},
                                       {"state", command.state},
                                       {"failure", command.failure},
                                       {"name", command.name},
                                       {"tool", command.tool},
                                       {"site", command.site},
                                       {"client", command.client},
                                       {"since", since},
                                       {"before", before}}));
    before = text_at(answer, "next");
    const Objects page = objects_at(answer, "arrays");
    left -= std::min<std::uint64_t>(left, page.size());
    for (const json::object& one : page) {
      if (command.json)
        print_json(one);
      else
        found.push_back(one);
    }
  } while (left > 0 && !before.empty());
  if (!found.empty())
    print(submission_table(Objects(found.begin(), found.end()), now()).text(columns_of_output()));
  if (!before.empty()) say_there_may_be_more();
  return kExitDone;
}

}  // namespace

int perform(const ListCommand& command, const Session& session) {
  EngineClient client = session.client();
  find_engine(client, session.places, session.interrupt);
  if (!command.ids.empty())
    return list_tasks_of(command, client, resolve_ids(client, command.ids, ""));
  if (command.tasks) return list_tasks_of(command, client, {""});
  return list_submissions(command, client);
}

}  // namespace hpcbatch

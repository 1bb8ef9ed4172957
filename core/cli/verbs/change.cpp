// `cancel`, `hold`, `release`, `retry`, `requeue`, `update`: what changes tasks that there are.
#include "cli/client/engine_client.hpp"
#include "cli/process/process.hpp"
#include "cli/show/values.hpp"
#include "cli/verbs/verbs.hpp"
#include "documents/task_values.hpp"

#include <boost/json/array.hpp>

#include <utility>

namespace hpcbatch {
namespace {

namespace json = boost::json;

struct Words {
  const char* path;
  const char* done;
  const char* nothing;
};

Words words_of(ChangeCommand::Change change) {
  using Change = ChangeCommand::Change;
  switch (change) {
    case Change::Cancel:
      return {"cancel", "cancelled", "all of these tasks have ended already"};
    case Change::Hold:
      return {"hold", "held", "none of these tasks waits unheld"};
    case Change::Release:
      return {"release", "released", "none of these tasks is held"};
    case Change::Retry:
      return {"retry", "queued again", "none of these tasks has failed or was cancelled"};
    case Change::Requeue:
      return {"requeue", "told to end and run again", "none of these tasks runs"};
    case Change::Update:
      return {"update", "changed", "none of these tasks waits"};
  }
  return {};
}

std::string tasks_in_words(double tasks) {
  return whole(tasks) + (tasks == 1 ? " task" : " tasks");
}

/// One that a pilot has may end by itself before it hears of it.
std::string cancelled_in_words(double cancelled, double at_pilots) {
  const std::string told =
      at_pilots == 1 ? " at a pilot is told to end\n" : " at pilots are told to end\n";
  if (cancelled == 0) return tasks_in_words(at_pilots) + told;
  return tasks_in_words(cancelled) + " cancelled, and " + whole(at_pilots) + told;
}

/// Needs are those of a submission, not of its tasks.
std::string needs_in_words(const json::object& answer) {
  const double others = number_at(answer, "others"), later = number_at(answer, "later");
  std::string text;
  if (others > 0)
    text += "; " + tasks_in_words(others) + " of it that " +
            (others == 1 ? "waits asks" : "wait ask") + " for that now, too";
  if (later > 0)
    text += "; " + whole(later) + " of the same submission that " +
            (later == 1 ? "is not retried now would" : "are not retried now would") +
            " need it as well, once retried";
  return text;
}

std::string queued_in_words(const json::object& answer) {
  const double dependants = number_at(answer, "dependants");
  const double named = number_at(answer, "tasks") - dependants;
  std::string text = tasks_in_words(named) + " queued again";
  if (dependants > 0)
    text += ", and " + whole(dependants) + " that could not start without " +
            (named == 1 ? "it" : "them");
  return text + needs_in_words(answer) + "\n";
}

std::string held_in_words(double held, double at_pilots) {
  return (held == 0 ? "none held yet" : tasks_in_words(held) + " held") + "; " + whole(at_pilots) +
         (at_pilots == 1
              ? " is at a pilot: it goes on if it runs, and is held if it waits there\n"
              : " are at pilots: those that run go on, those that wait there are held\n");
}

}  // namespace

int change_tasks(const ChangeCommand& command, const Session& session) {
  const Words words = words_of(command.change);
  EngineClient client = session.client();
  find_engine(client, session.places, session.interrupt);
  json::object request;
  json::object needs;
  for (const auto& [key, texts] : command.needs.said)
    needs[key] = task_value(*find_task_key(key), texts);
  if (command.change == ChangeCommand::Change::Update) {
    json::array one{std::move(needs)};
    resolve_waits(client, one, [] {});
    request["set"] = std::move(one.front());
  } else if (!needs.empty()) {
    request["needs"] = std::move(needs);
  }
  if (command.failed_only) request["failed_only"] = true;
  if (!command.failures.empty())
    request["failures"] = json::array(command.failures.begin(), command.failures.end());
  json::array& ids = request["ids"].emplace_array();
  for (const std::string& id : resolve_ids(client, command.ids, command.name)) ids.emplace_back(id);
  const json::object answer = client.post(std::string("/v1/tasks/") + words.path, request);
  const double tasks = number_at(answer, "tasks"), at_pilots = number_at(answer, "at_pilots");
  const bool is_hold = command.change == ChangeCommand::Change::Hold;
  if (command.json) {
    print_json(answer);
  } else if (at_pilots > 0) {
    print(is_hold ? held_in_words(tasks, at_pilots)
                  : cancelled_in_words(tasks - at_pilots, at_pilots));
  } else if (tasks > 0 && command.change == ChangeCommand::Change::Retry) {
    print(queued_in_words(answer));
  } else if (tasks > 0) {
    print(tasks_in_words(tasks) + " " + words.done + "\n");
  } else {
    const bool is_some = command.failed_only || !command.failures.empty();
    print(std::string("nothing to do: ") +
          (is_some ? "none of these tasks has failed so" : words.nothing) + "\n");
  }
  return kExitDone;
}

}  // namespace hpcbatch

// `cancel`, `hold`, `release`, `retry`, `requeue`, `update`, `signal`: what changes tasks that there are.
#include "cli/client/engine_client.hpp"
#include "cli/process/process.hpp"
#include "cli/show/changes.hpp"
#include "cli/show/values.hpp"
#include "cli/verbs/verbs.hpp"
#include "documents/task_values.hpp"

#include <boost/json/array.hpp>

#include <utility>

namespace hpcbatch {
namespace json = boost::json;

int perform(const ChangeCommand& command, const Session& session) {
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
  if (!command.signal.empty()) request["signal"] = command.signal;
  if (!command.to.empty()) request["to"] = command.to;
  json::array& ids = request["ids"].emplace_array();
  for (const std::string& id : resolve_ids(client, command.ids, command.name)) ids.emplace_back(id);
  const json::object answer =
      client.post(std::string("/v1/tasks/") + verb_of(command.change), request);
  const bool is_some = command.failed_only || !command.failures.empty();
  if (command.json)
    print_json(answer);
  else
    print(change_in_words(command.change, answer, is_some) + "\n");
  // Its sender counts on it, and nothing of it is left for later.
  const bool is_lost =
      command.change == ChangeCommand::Change::Signal && number_at(answer, "tasks") == 0;
  return is_lost ? kExitTaskFailed : kExitDone;
}

}  // namespace hpcbatch

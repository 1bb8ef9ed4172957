// `show`: tasks or submissions in full.
#include "cli/client/engine_start.hpp"
#include "cli/client/named.hpp"
#include "cli/process/exit.hpp"
#include "cli/show/describe.hpp"
#include "cli/show/terminal.hpp"
#include "cli/show/values.hpp"
#include "cli/verbs/verbs.hpp"

#include <string>
#include <utility>

namespace hpcbatch {
namespace {

namespace json = boost::json;

json::object shown(EngineClient& client, const std::string& id) {
  Answer answer = client.http().request("GET", "/v1/tasks/" + id, {}, EngineClient::kAnswerTime);
  // A number alone may be a whole array, which is no task.
  if (answer.status / 100 == 4 && id.find('.') == std::string::npos)
    answer = client.http().request("GET", "/v1/arrays/" + id, {}, EngineClient::kAnswerTime);
  return client.object_of(answer);
}

}  // namespace

int show_task(const ShowCommand& command, const Session& session) {
  EngineClient client = session.client();
  find_engine(client, session.places, session.interrupt);
  bool is_first = true;
  for (const std::string& id : one_by_one(resolve_ids(client, command.ids, command.name))) {
    json::object one = shown(client, id);
    if (command.json) {
      print_json(one);
      continue;
    }
    one.erase("trouble");
    if (!std::exchange(is_first, false)) print("\n");
    print(describe(one, columns_of_output()));
  }
  return kExitDone;
}

}  // namespace hpcbatch

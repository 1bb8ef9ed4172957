// `waits train`: hands over to the program that learns.
#include "cli/client/engine_start.hpp"
#include "cli/process/exit.hpp"
#include "cli/show/values.hpp"
#include "cli/verbs/part_program.hpp"
#include "cli/verbs/verbs.hpp"

#include <boost/json/serialize.hpp>

namespace hpcbatch {
namespace {

namespace json = boost::json;

/// The site that is meant: the only one, where none is named.
std::string site_of(const TrainCommand& command, EngineClient& client) {
  const json::object answer = client.get("/v1/sites");
  std::string names;
  const json::array& sites = answer.at("sites").as_array();
  for (const json::value& one : sites) {
    std::string name = text_at(one.as_object(), "name");
    if (name == command.site || (command.site.empty() && sites.size() == 1)) return name;
    names += (names.empty() ? "" : ", ") + name;
  }
  throw CommandError(kExitUsage,
                     command.site.empty()
                         ? "say which site's waits are to be learned: --site NAME (" + names + ")"
                         : "there is no site '" + command.site + "' (" + names + ")");
}

}  // namespace

int train_waits(const TrainCommand& command, const Session& session) {
  EngineClient client = session.client();
  find_engine(client, session.places, session.interrupt);
  const json::object asked{{"site", site_of(command, client)},
                           {"days", command.days},
                           {"estimator", command.estimator},
                           {"json", command.json}};
  become_part("hpcbatch-estimate", {"learn", json::serialize(asked)}, session.interrupt);
}

}  // namespace hpcbatch

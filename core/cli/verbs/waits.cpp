// `waits`: how long allocations wait in the queues, and how good that was known.
#include "cli/client/engine_client.hpp"
#include "cli/process/process.hpp"
#include "cli/show/listings.hpp"
#include "cli/show/terminal.hpp"
#include "cli/show/values.hpp"
#include "cli/verbs/verbs.hpp"
#include "documents/texts.hpp"

#include <hpcbatch/text.hpp>

#include <boost/json/serialize.hpp>

#include <string>

namespace hpcbatch {
namespace {

namespace json = boost::json;

/// Leaves those of that shape and site; how many shapes these are.
std::size_t keep_of(json::object& waits, const WaitsCommand& command) {
  for (const char* key : {"shapes", "queued"}) {
    json::array kept;
    for (json::value& one : waits.at(key).as_array()) {
      const json::object& object = one.as_object();
      if (!command.shape.empty() && text_at(object, "shape") != command.shape) continue;
      if (!command.site.empty() && text_at(object, "site") != command.site) continue;
      kept.push_back(std::move(one));
    }
    waits[key] = std::move(kept);
  }
  return waits.at("shapes").as_array().size();
}

}  // namespace

int perform(const WaitsCommand& command, const Session& session) {
  EngineClient client = session.client();
  find_engine(client, session.places, session.interrupt);
  json::object waits = client.get("/v1/waits");
  const bool is_for_all = command.shape.empty() && command.site.empty();
  const std::string names = joined(objects_at(waits, "shapes"), ", ", [](const json::object& one) {
    return text_at(one, "site") + ":" + text_at(one, "shape");
  });
  if (keep_of(waits, command) == 0 && !is_for_all) {
    const std::string asked = command.shape.empty() ? "" : "shape '" + command.shape + "'";
    const std::string where = command.site.empty() ? "" : "site '" + command.site + "'";
    const std::string verb = nearest_spelling(command.shape, {"train", "eval"});
    throw CommandError(kExitUsage, "there is no " + asked +
                                       (asked.empty() || where.empty() ? "" : " at ") + where +
                                       " (site and shape: " + names + ")" +
                                       (verb.empty() ? "" : "; did you mean '" + verb + "'?"));
  }
  const auto room = columns_of_output();
  return show_answer(command.json, waits,
                     command.score ? waits_score_text(waits, room) : waits_text(waits, room));
}

// `waits train`: hands over to the program that learns.

namespace {

/// The site that is meant: the only one, where none is named.
std::string site_of(const TrainCommand& command, EngineClient& client) {
  const json::object answer = client.get("/v1/sites");
  std::string names;
  const Objects sites = objects_at(answer, "sites");
  for (const json::object& one : sites) {
    std::string name = text_at(one, "name");
    if (name == command.site || (command.site.empty() && sites.size() == 1)) return name;
    names += (names.empty() ? "" : ", ") + name;
  }
  throw CommandError(kExitUsage,
                     command.site.empty()
                         ? "say which site's waits are to be learned: --site NAME (" + names + ")"
                         : "there is no site '" + command.site + "' (" + names + ")");
}

}  // namespace

int perform(const TrainCommand& command, const Session& session) {
  EngineClient client = session.client();
  find_engine(client, session.places, session.interrupt);
  const json::object asked{{"site", site_of(command, client)},
                           {"days", command.days},
                           {"estimator", command.estimator},
                           {"json", command.json}};
  become_part("hpcbatch-estimate", {"learn", json::serialize(asked)}, session.interrupt);
}

}  // namespace hpcbatch

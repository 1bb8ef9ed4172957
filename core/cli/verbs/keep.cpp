// `keep`: pilots that are there until a time, whatever there is for them to do.
#include "cli/client/engine_start.hpp"
#include "cli/process/exit.hpp"
#include "cli/show/table.hpp"
#include "cli/show/terminal.hpp"
#include "cli/show/values.hpp"
#include "cli/verbs/verbs.hpp"
#include "documents/text_check.hpp"

#include <boost/json/array.hpp>

#include <fmt/format.h>

#include <ctime>
#include <string>

namespace hpcbatch {
namespace {

namespace json = boost::json;

/// A line for each shape of which no more pilots are asked for at present.
std::string pauses_text(const json::array& keeps, std::time_t now) {
  std::string text;
  for (const json::value& each : keeps) {
    const json::object& keep = each.as_object();
    if (!keep.contains("paused_until")) continue;
    text += fmt::format(
        "{0}/{1} asks for no pilots until {2}: {3}; 'hpcbatch sites resume {0}' ends "
        "the pause\n",
        text_at(keep, "site"), text_at(keep, "shape"), moment_at(keep, "paused_until", now),
        one_line(text_at(keep, "message")));
  }
  return text;
}

std::string keeps_text(const json::object& answer, std::time_t now,
                       std::optional<std::size_t> room) {
  const json::array* keeps = array_at(answer, "keeps");
  if (!keeps || keeps->empty()) return "no pilots are kept; 'hpcbatch keep SHAPE --until 18:00'\n";
  using Side = Table::Side;
  Table table({{"SITE"},
               {"SHAPE"},
               {"KEPT", Side::Right},
               {"RUNNING", Side::Right},
               {"QUEUED", Side::Right},
               {"UNTIL"},
               {"MISSING", Side::Right},
               {"BEYOND", Side::Right}});
  for (const json::value& each : *keeps) {
    const json::object& keep = each.as_object();
    table.add({text_at(keep, "site"), text_at(keep, "shape"), text_at(keep, "allocations"),
               text_at(keep, "running"), text_at(keep, "queued"), moment_at(keep, "until", now),
               duration_at(keep, "missing"), duration_at(keep, "beyond")});
  }
  return table.text(room) + pauses_text(*keeps, now);
}

}  // namespace

int keep_pilots(const KeepCommand& command, const Session& session) {
  EngineClient client = session.client();
  json::object answer;
  if (command.shape.empty()) {
    find_engine(client, session.places, session.interrupt);
    answer = client.get("/v1/keeps");
  } else {
    connect_or_start(client, session.places, session.interrupt, Lifetime::UntilIdle);
    json::object body{{"shape", command.shape},
                      {"allocations", command.end ? 0 : command.allocations}};
    if (!command.site.empty()) body["site"] = command.site;
    if (!command.end) body["until"] = command.until;
    answer = client.post("/v1/keeps", body);
  }
  if (command.json)
    print_json(answer);
  else
    print(keeps_text(answer, std::time(nullptr), columns_of_output()));
  return kExitDone;
}

}  // namespace hpcbatch

// `dropbox`: the folders that the engine watches.
#include "cli/client/engine_start.hpp"
#include "cli/process/exit.hpp"
#include "cli/show/table.hpp"
#include "cli/show/values.hpp"
#include "cli/verbs/verbs.hpp"

#include <boost/json/array.hpp>

#include <string>

namespace hpcbatch {
namespace {

namespace json = boost::json;

std::string line_of_dropbox(const json::object& box) {
  const std::string message = text_at(box, "message");
  return one_line(text_at(box, "directory")) +
         (message.empty() ? "" : "  (not watched: " + one_line(message) + ")") + "\n";
}

}  // namespace

int watch_dropbox(const DropboxCommand& command, const Session& session) {
  EngineClient client = session.client();
  if (command.directory.empty()) {
    const json::object answer = client.get("/v1/dropboxes");
    if (const json::array* boxes = array_at(answer, "dropboxes")) {
      for (const json::value& box : *boxes) {
        if (command.json)
          print_json(box);
        else if (box.is_object())
          print(line_of_dropbox(box.get_object()));
      }
    }
    return kExitDone;
  }
  json::object request{{"directory", command.directory}};
  if (command.remove) {
    const json::object answer = client.post("/v1/dropboxes/remove", request);
    if (command.json)
      print_json(answer);
    else
      print("the engine watches " + one_line(command.directory) + " no more\n");
    return kExitDone;
  }
  json::array& allow = request["allow"].emplace_array();
  for (const std::string& folder : command.allow) allow.emplace_back(folder);
  json::array& templates = request["templates"].emplace_array();
  for (const std::string& folder : command.templates) templates.emplace_back(folder);
  json::object& variables = request["variables"].emplace_object();
  for (const auto& [name, value] : command.variables) variables[name] = value;

  connect_or_start(client, session.places, session.interrupt, Lifetime::UntilIdle);
  const json::object answer = client.post("/v1/dropboxes", request);
  if (command.json)
    print_json(answer);
  else
    print("the engine watches " + one_line(command.directory) + "\n");
  return kExitDone;
}

}  // namespace hpcbatch

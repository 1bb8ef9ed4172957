#include "api/dropbox_routes.hpp"

#include "api/answers/to_json.hpp"
#include "api/read/bad_request.hpp"
#include "api/read/json_values.hpp"
#include "api/read/read_request.hpp"

#include <boost/json/value_from.hpp>

#include <fmt/format.h>

namespace hpcbatch {
namespace {

namespace json = boost::json;

std::string path_of(std::string_view key, const json::value& entry) {
  if (!entry.is_string() || !std::string_view(entry.get_string()).starts_with('/'))
    throw BadRequest(fmt::format("'{}' must hold absolute paths", key));
  return std::string(entry.get_string());
}

std::vector<std::string> paths_of(std::string_view key, const json::array& entries) {
  std::vector<std::string> paths;
  for (const json::value& entry : entries) paths.push_back(path_of(key, entry));
  return paths;
}

std::map<std::string, std::string> variables_of(const json::object& map) {
  std::map<std::string, std::string> variables;
  for (const auto& [name, text] : map) {
    if (!text.is_string()) throw BadRequest("'variables' must be a map of names to texts");
    variables[name] = std::string(text.get_string());
  }
  return variables;
}

DropboxSettings settings_of(const json::object& body) {
  DropboxSettings settings;
  for (const auto& [key, value] : body) {
    if (key == "directory") {
      settings.directory = path_of(key, value);
    } else if (key == "allow" && value.is_array()) {
      settings.allow = paths_of(key, value.get_array());
    } else if (key == "templates" && value.is_array()) {
      settings.templates = paths_of(key, value.get_array());
    } else if (key == "variables" && value.is_object()) {
      settings.variables = variables_of(value.get_object());
    } else {
      throw BadRequest(fmt::format(
          "'{}' is no key of a drop box, or not of the right kind; docs/api.md lists them",
          std::string(key)));
    }
  }
  if (settings.directory.empty()) throw BadRequest("'directory' is missing");
  return settings;
}

}  // namespace

void DropboxRoutes::add_to(Routes& routes) {
  routes.add("GET", "dropboxes", [this](HttpRequest&, const ReplyPtr& reply) { list(reply); });
  routes.add("POST", "dropboxes", [this](HttpRequest& request, const ReplyPtr& reply) {
    change(request, false, reply);
  });
  routes.add("POST", "dropboxes/remove",
             [this](HttpRequest& request, const ReplyPtr& reply) { change(request, true, reply); });
}

void DropboxRoutes::list(const ReplyPtr& reply) const {
  json::array list;
  for (const DropboxState& box : ports_.list()) {
    const DropboxSettings& settings = box.settings;
    json::object object{
        {"directory", settings.directory},
        {"allow", json::array(settings.allow.begin(), settings.allow.end())},
        {"templates", json::array(settings.templates.begin(), settings.templates.end())},
        {"variables", json::value_from(settings.variables)},
        {"configured", box.is_configured},
        {"watched", box.why_not.empty()}};
    if (!box.why_not.empty()) object["message"] = box.why_not;
    list.push_back(std::move(object));
  }
  reply->answer(200, {{"dropboxes", std::move(list)}});
}

void DropboxRoutes::change(const HttpRequest& request, bool removes, const ReplyPtr& reply) {
  const json::value body = parse_body(request.body);
  const DropboxSettings settings = settings_of(body.get_object());
  const auto answer = [reply, directory = settings.directory,
                       what = removes ? "removed" : "watching"](const Result<void>& done) {
    if (done) return reply->answer(200, {{what, directory}});
    reply->error(done.error().kind == Error::Kind::Transient ? 503 : 400, done.error().text);
  };
  if (removes) return ports_.remove(settings.directory, answer);
  ports_.add(settings, answer);
}

}  // namespace hpcbatch

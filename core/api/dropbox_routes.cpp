#include "api/dropbox_ports.hpp"

#include "api/answers/to_json.hpp"
#include "api/read/json_values.hpp"
#include "api/read/read_request.hpp"
#include "dropbox/job_folder.hpp"
#include "posix/files.hpp"

#include <fmt/format.h>
#include <boost/json/parse.hpp>
#include <boost/json/serialize.hpp>
#include <boost/json/value_from.hpp>
#include <boost/json/value_to.hpp>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <sstream>

#include <fcntl.h>

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

namespace {

namespace json = boost::json;

/// Throws boost::system::system_error or std::exception for what is no drop box.
DropboxSettings box_of(const json::value& value) {
  const json::object& object = value.as_object();
  DropboxSettings box;
  box.directory = json::value_to<std::string>(object.at("directory"));
  box.allow = json::value_to<std::vector<std::string>>(object.at("allow"));
  box.templates = json::value_to<std::vector<std::string>>(object.at("templates"));
  box.variables = json::value_to<std::map<std::string, std::string>>(object.at("variables"));
  if (!box.directory.starts_with('/'))
    throw std::invalid_argument("its directory is no absolute path");
  return box;
}

}  // namespace

RememberedBoxes read_remembered(const std::string& file) {
  RememberedBoxes remembered;
  std::ifstream in(file);
  if (!in) {
    const int why = errno;
    if (why != ENOENT)
      remembered.warnings.push_back(
          fmt::format("cannot read {}: {}; name the drop boxes again", file, std::strerror(why)));
    return remembered;
  }
  std::stringstream text;
  text << in.rdbuf();
  boost::system::error_code error;
  const json::value boxes = json::parse(text.str(), error);
  if (error || !boxes.is_array()) {
    remembered.warnings.push_back(fmt::format("{} is damaged; name the drop boxes again", file));
    return remembered;
  }
  for (const json::value& box : boxes.get_array()) {
    try {
      remembered.boxes.push_back(box_of(box));
    } catch (const std::exception& e) {
      remembered.warnings.push_back(
          fmt::format("an entry of {} is damaged ({}); name its drop box again: {}", file, e.what(),
                      json::serialize(box)));
    }
  }
  return remembered;
}

Result<void> write_remembered(const std::string& file, const std::vector<DropboxSettings>& boxes) {
  json::array list;
  for (const DropboxSettings& box : boxes) {
    list.push_back({{"directory", box.directory},
                    {"allow", json::value_from(box.allow)},
                    {"templates", json::value_from(box.templates)},
                    {"variables", json::value_from(box.variables)}});
  }
  errno = replace_file(AT_FDCWD, file, json::serialize(list) + "\n",
                       {.mode = 0600, .sync_folder = true});
  if (errno != 0) return errno_error("cannot write " + file);
  return {};
}

}  // namespace hpcbatch

#include "documents/configuration.hpp"

#include "documents/yaml.hpp"

#include <fmt/format.h>

#include <cerrno>
#include <set>

#include <sys/stat.h>

namespace hpcbatch {
namespace {

constexpr std::int64_t kMostJobs = 100'000;

std::vector<std::string> paths(const std::optional<View>& view) {
  std::vector<std::string> result;
  if (!view) return result;
  for (const View& item : view->list()) result.push_back(item.absolute_path());
  return result;
}

void read_sites(const View& view, Configuration& configuration) {
  std::map<std::string, int> seen;
  for (const View& item : view.list()) {
    SiteLines lines;
    Site site = parse_site(item, lines);
    if (const auto [at, is_new] = seen.emplace(site.name, item.line()); !is_new) {
      item.fail(fmt::format("a second site is named '{}' (the first is in line {})", site.name,
                            at->second));
    }
    configuration.sites.push_back(std::move(site));
    configuration.lines.push_back(lines);
  }
}

void read_tools(const View& view, Configuration& configuration) {
  for (const View& tool : view.map().entries()) {
    MapView settings = tool.map();
    if (const auto parameters = settings.find("parameters")) {
      configuration.tool_parameters[tool.name()] = parameters->text_map();
    }
    settings.finish();
  }
}

void read_dropboxes(const View& view, Configuration& configuration) {
  std::set<std::string> seen;
  for (const View& item : view.list()) {
    MapView map = item.map();
    DropboxSettings dropbox;
    dropbox.directory = map.get("directory").absolute_path();
    if (const auto workspace = map.find("workspace"))
      dropbox.workspace = workspace->absolute_path();
    dropbox.allow = paths(map.find("allow"));
    dropbox.templates = paths(map.find("templates"));
    if (const auto variables = map.find("variables")) dropbox.variables = variables->text_map();
    if (const auto limit = map.find("input_limit")) dropbox.input_limit = limit->size();
    if (const auto limit = map.find("jobs_limit"))
      dropbox.jobs_limit = static_cast<std::uint32_t>(limit->integer(1, kMostJobs));
    map.finish();
    if (!seen.insert(dropbox.directory).second) {
      item.fail(fmt::format("the drop box {} is named twice", dropbox.directory));
    }
    configuration.dropboxes.push_back(std::move(dropbox));
  }
}

Configuration configuration_of(const Node& root, const std::string& file) {
  Configuration configuration;
  configuration.file = file;
  if (root.kind == Node::Kind::Null) return configuration;
  const View whole(root, file, "the configuration");
  MapView map = whole.map();
  if (const auto sites = map.find("sites")) read_sites(*sites, configuration);
  if (const auto group = map.find("trust_group")) {
    configuration.trust_group = group->non_empty_text();
    for (Site& site : configuration.sites)
      if (site.trust_group.empty()) site.trust_group = configuration.trust_group;
  }
  configuration.plugin_path = paths(map.find("plugin_path"));
  configuration.tool_path = paths(map.find("tool_path"));
  if (const auto tools = map.find("tools")) read_tools(*tools, configuration);
  if (const auto dropboxes = map.find("dropboxes")) read_dropboxes(*dropboxes, configuration);
  for (DropboxSettings& box : configuration.dropboxes) box.trust_group = configuration.trust_group;
  map.finish();
  return configuration;
}

}  // namespace

Configuration parse_configuration(std::string_view text, const std::string& file) {
  return configuration_of(parse_yaml(text, file), file);
}

Configuration read_configuration(const std::string& file) {
  return configuration_of(read_yaml(file), file);
}

std::vector<std::string> configured_plugin_path(const Places& places) {
  struct ::stat facts {};
  if (::lstat(places.configuration.c_str(), &facts) != 0 && errno == ENOENT) return {};
  return read_configuration(places.configuration).plugin_path;
}

}  // namespace hpcbatch

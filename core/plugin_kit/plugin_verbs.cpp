#include "plugin_kit/plugin_verbs.hpp"

#include "cli/show/table.hpp"
#include "cli/show/terminal.hpp"
#include "cli/show/values.hpp"
#include "plugin_host/plugin_host.hpp"

#include <fmt/format.h>
#include <boost/json/array.hpp>

#include <algorithm>
#include <fstream>
#include <iterator>
#include <stdexcept>
#include <string_view>
#include <utility>

namespace hpcbatch::plugin_kit {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kLongestName = 40;

/// A target of CMake, a file and a word of the configuration at once.
bool is_good_name(std::string_view name) {
  return !name.empty() && name.size() <= kLongestName && name.front() >= 'a' &&
         name.front() <= 'z' && std::all_of(name.begin(), name.end(), [](char c) {
           return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_';
         });
}

std::string with(std::string text, std::string_view what, std::string_view instead) {
  for (std::size_t at = 0; (at = text.find(what, at)) != std::string::npos; at += instead.size())
    text.replace(at, what.size(), instead);
  return text;
}

std::string text_of(const fs::path& file) {
  std::ifstream in(file, std::ios::binary);
  if (!in) throw std::invalid_argument(fmt::format("cannot read {}", file.string()));
  return {std::istreambuf_iterator<char>(in), {}};
}

void check(const NewProject& project, const fs::path& templates) {
  if (!is_good_name(project.name))
    throw std::invalid_argument(
        fmt::format("'{}' is no name of a plugin: it is small letters, digits and _, a letter "
                    "first, {} at most",
                    project.name, kLongestName));
  std::error_code error;
  if (!fs::is_directory(templates, error))
    throw std::invalid_argument(fmt::format(
        "there is no kit for a {} plugin ({}); there is one for tool, scheduler and transport",
        project.kind, templates.string()));
  if (fs::exists(project.directory, error) &&
      (!fs::is_directory(project.directory, error) || !fs::is_empty(project.directory, error)))
    throw std::invalid_argument(fmt::format("{} is there already; say another folder with --dir",
                                            project.directory.string()));
}

namespace json = boost::json;

json::object plugin_json(hpcbatch_plugin_kind kind, const PluginFile& plugin) {
  json::object one{{"kind", kind_name(kind)}, {"name", plugin.name}};
  const auto facts = PluginHost::check(plugin.path);
  if (facts && facts->kind != kind)
    one["refused"] =
        "it is a plugin of kind " + kind_name(facts->kind) + "; put it into another directory";
  else if (facts)
    one["version"] = facts->version;
  else
    one["refused"] = facts.error().text;
  one["path"] = plugin.path.string();
  json::array hides;
  for (const std::filesystem::path& hidden : plugin.hidden) hides.emplace_back(hidden.string());
  if (!hides.empty()) one["hides"] = std::move(hides);
  return one;
}

}  // namespace

std::vector<fs::path> write_project(const NewProject& project, const fs::path& kit,
                                    const fs::path& prefix) {
  const fs::path templates = kit / project.kind;
  check(project, templates);
  std::vector<std::pair<fs::path, std::string>> files;
  for (const fs::directory_entry& entry : fs::directory_iterator(templates)) {
    const auto filled = [&](const std::string& text) {
      return with(with(text, "@NAME@", project.name), "@PREFIX@", prefix.string());
    };
    // `NAME.cpp.in` becomes NAME.cpp.
    files.emplace_back(project.directory / filled(entry.path().stem().string()),
                       filled(text_of(entry.path())));
  }
  std::sort(files.begin(), files.end());
  std::error_code error;
  fs::create_directories(project.directory, error);
  std::vector<fs::path> written;
  for (const auto& [file, text] : files) {
    std::ofstream out(file, std::ios::binary);
    out << text;
    out.close();
    if (!out) throw std::invalid_argument(fmt::format("cannot write {}", file.string()));
    written.push_back(file);
  }
  return written;
}

json::object list_plugins(const std::vector<std::filesystem::path>& search) {
  json::array searched, plugins;
  for (const std::filesystem::path& folder : search) searched.emplace_back(folder.string());
  for (const auto kind : {HPCBATCH_KIND_SCHEDULER, HPCBATCH_KIND_TRANSPORT, HPCBATCH_KIND_TOOL,
                          HPCBATCH_KIND_ESTIMATOR}) {
    for (const PluginFile& plugin : find_plugins(search, kind))
      plugins.push_back(plugin_json(kind, plugin));
  }
  return {{"searched", std::move(searched)}, {"plugins", std::move(plugins)}};
}

std::string list_text(const json::object& list) {
  Table table({{"KIND"}, {"NAME"}, {"VERSION"}, {"FILE"}});
  std::string notes;
  for (const json::value& each : list.at("plugins").as_array()) {
    const json::object& one = each.as_object();
    const bool is_refused = one.contains("refused");
    table.add({text_at(one, "kind"), text_at(one, "name"),
               is_refused ? "refused" : text_at(one, "version"), text_at(one, "path")});
    if (is_refused) notes += text_at(one, "refused") + "\n";
    if (const json::array* hides = array_at(one, "hides")) {
      for (const json::value& hidden : *hides)
        notes += text_at(one, "path") + " hides " + std::string(hidden.as_string()) + "\n";
    }
  }
  std::string text;
  if (table.empty()) {
    text = "no plugin was found in";
    for (const json::value& folder : list.at("searched").as_array())
      text += " " + std::string(folder.as_string());
    return text + "\n";
  }
  text = table.text(columns_of_output(), Table::Last::Wrapped);
  return notes.empty() ? text : text + "\n" + notes;
}

}  // namespace hpcbatch::plugin_kit

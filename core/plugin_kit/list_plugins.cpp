#include "plugin_kit/list_plugins.hpp"

#include "cli/show/table.hpp"
#include "cli/show/terminal.hpp"
#include "cli/show/values.hpp"
#include "plugin_host/plugin_host.hpp"

#include <boost/json/array.hpp>

namespace hpcbatch::plugin_kit {
namespace {

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

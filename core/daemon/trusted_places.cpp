#include "daemon/trusted_places.hpp"

#include "accounts/accounts.hpp"

#include <filesystem>

#include <sys/stat.h>

namespace hpcbatch {
namespace {

struct Place {
  std::string what;  ///< for the sentence
  std::string path;
  std::string trust_group;
};

std::optional<std::string> untrusted(const Place& place, Wanted wanted,
                                     std::vector<std::string>& said) {
  const auto found = distrust(place.path, wanted, place.trust_group);
  if (!found) return std::nullopt;
  std::string text = place.what + " " + place.path + ": " + found->text + found->group_hint;
  if (found->is_refusal) return "cannot use " + text;
  said.push_back(std::move(text));
  return std::nullopt;
}

Place socket_folder(const std::string& path, const std::string& trust_group) {
  return {"the folder of the socket", path, trust_group};
}

void add_workspace(const Site& site, std::vector<Place>& places) {
  for (const char* part : {"", "/allocations", "/logs", "/outbox", "/work", "/bin"})
    places.push_back(
        {"the workspace of site '" + site.name + "'", site.workspace + part, site.trust_group});
}

}  // namespace

std::optional<std::string> untrusted_configuration(const std::string& file,
                                                   std::vector<std::string>& said) {
  // What it says of trust cannot speak for itself.
  auto why = untrusted({"the configuration", file, ""}, Wanted::File, said);
  return why;
}

std::optional<std::string> untrusted_socket_folder(const std::string& folder,
                                                   const std::string& trust_group,
                                                   std::vector<std::string>& said) {
  return untrusted(socket_folder(folder, trust_group), Wanted::Folder, said);
}

std::optional<std::string> untrusted_places(const Configuration& configuration,
                                            const Places& places, const std::vector<Site>& sites,
                                            std::vector<std::string>& said) {
  const std::string& group = configuration.trust_group;
  std::vector<Place> all{
      {"the state directory", places.home, group},
      socket_folder(std::filesystem::path(places.socket).parent_path().string(), group)};
  for (const Site& site : sites)
    if (site.transport == "shared_fs") add_workspace(site, all);
  for (const std::string& folder : configuration.plugin_path)
    all.push_back({"the folder of plugins", folder, group});
  for (const std::string& folder : configuration.tool_path)
    all.push_back({"the folder of tools", folder, group});
  for (const DropboxSettings& box : configuration.dropboxes) {
    for (const std::string& folder : box.templates)
      all.push_back({"the folder of templates", folder, group});
    if (!box.workspace.empty())
      all.push_back({"the workspace of the drop box", box.workspace, group});
  }
  for (const Place& place : all)
    if (auto why = untrusted(place, Wanted::Folder, said)) return why;
  return std::nullopt;
}

}  // namespace hpcbatch

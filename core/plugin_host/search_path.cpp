#include "plugin_host/search_path.hpp"

#include "documents/state_paths.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>

namespace hpcbatch {

std::string_view folder_of(hpcbatch_plugin_kind kind) {
  switch (kind) {
    case HPCBATCH_KIND_SCHEDULER:
      return "schedulers";
    case HPCBATCH_KIND_TRANSPORT:
      return "transports";
    case HPCBATCH_KIND_TOOL:
      return "tools";
    case HPCBATCH_KIND_ESTIMATOR:
      return "estimators";
  }
  return "unknown";
}

std::string kind_name(unsigned kind) {
  switch (kind) {
    case HPCBATCH_KIND_SCHEDULER:
      return "scheduler";
    case HPCBATCH_KIND_TRANSPORT:
      return "transport";
    case HPCBATCH_KIND_TOOL:
      return "tool";
    case HPCBATCH_KIND_ESTIMATOR:
      return "estimator";
    default:
      return fmt::format("kind {}", kind);
  }
}

std::vector<std::filesystem::path> plugin_search_path(const std::vector<std::string>& configured,
                                                      std::string_view environment,
                                                      const std::filesystem::path& program) {
  std::vector<std::filesystem::path> path(configured.begin(), configured.end());
  while (!environment.empty()) {
    const auto colon = std::min(environment.find(':'), environment.size());
    if (colon > 0) path.emplace_back(environment.substr(0, colon));
    environment.remove_prefix(std::min(colon + 1, environment.size()));
  }
  for (const std::string_view own : kOwnPlugins)
    path.push_back(program.parent_path().parent_path() / own);
  return path;
}

std::vector<PluginFile> find_plugins(const std::vector<std::filesystem::path>& search,
                                     hpcbatch_plugin_kind kind) {
  std::map<std::string, PluginFile> found;
  for (const auto& directory : search) {
    std::error_code error;
    for (const auto& entry :
         std::filesystem::directory_iterator(directory / folder_of(kind), error)) {
      if (entry.path().extension() != ".so") continue;
      auto [it, first] = found.try_emplace(entry.path().stem().string());
      if (first) {
        it->second = {.name = it->first, .path = entry.path(), .hidden = {}};
      } else {
        it->second.hidden.push_back(entry.path());
      }
    }
  }
  std::vector<PluginFile> plugins;
  plugins.reserve(found.size());
  for (auto& [name, file] : found) plugins.push_back(std::move(file));
  return plugins;
}

}  // namespace hpcbatch

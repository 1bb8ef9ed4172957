#include "documents/state_paths.hpp"

#include <fmt/format.h>

#include <string_view>

namespace hpcbatch {
namespace {

std::string value_of(const EnvironmentMap& environment, const std::string& name) {
  const auto at = environment.find(name);
  return at == environment.end() ? "" : at->second;
}

/// The XDG rules say to ignore relative values.
std::string xdg_value(const EnvironmentMap& environment, const std::string& name) {
  std::string value = value_of(environment, name);
  return value.starts_with('/') ? value : "";
}

std::string without_slash_at_end(std::string path) {
  while (path.size() > 1 && path.back() == '/') path.pop_back();
  return path;
}

Error not_absolute(std::string_view name, std::string_view value) {
  return Error{Error::Kind::Rejected,
               fmt::format("cannot use {}={}: it must be an absolute path", name, value)};
}

}  // namespace

Result<Places> find_places(const EnvironmentMap& environment) {
  const std::string own_home = value_of(environment, "HPCBATCH_HOME");
  const std::string own_file = value_of(environment, "HPCBATCH_CONFIG");
  const std::string users_home = value_of(environment, "HOME");
  if (!own_home.empty() && !own_home.starts_with('/'))
    return not_absolute("HPCBATCH_HOME", own_home);
  if (!own_file.empty() && !own_file.starts_with('/'))
    return not_absolute("HPCBATCH_CONFIG", own_file);

  const std::string state = xdg_value(environment, "XDG_STATE_HOME");
  const std::string config = xdg_value(environment, "XDG_CONFIG_HOME");
  const bool needs_users_home =
      (own_home.empty() && state.empty()) || (own_file.empty() && config.empty());
  if (needs_users_home && !users_home.starts_with('/')) {
    // A service may have no HOME; its state alone is then enough to go by.
    if (own_home.empty()) {
      return Error{Error::Kind::Rejected,
                   "cannot tell where to keep the state: HOME is not set to an absolute path; set "
                   "HPCBATCH_HOME or HOME"};
    }
  }

  Places places;
  if (!own_home.empty()) {
    places.home = without_slash_at_end(own_home);
  } else {
    places.home = (state.empty() ? users_home + "/.local/state" : state) + "/hpcbatch";
  }

  const std::string runtime = xdg_value(environment, "XDG_RUNTIME_DIR");
  const bool in_runtime = own_home.empty() && !runtime.empty();
  places.socket = (in_runtime ? runtime + "/hpcbatch" : places.home) + "/socket";

  if (!own_file.empty()) {
    places.configuration = own_file;
    places.configuration_is_named = true;
  } else if (!config.empty()) {
    places.configuration = config + "/hpcbatch/config.yaml";
  } else if (users_home.starts_with('/')) {
    places.configuration = users_home + "/.config/hpcbatch/config.yaml";
  } else {
    places.configuration = places.home + "/config.yaml";
  }
  return places;
}

}  // namespace hpcbatch

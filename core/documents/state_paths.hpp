// Where hpcbatch keeps its state, its socket and its configuration.
#pragma once

#include "hpcbatch/result.hpp"

#include <array>
#include <map>
#include <string>
#include <string_view>

namespace hpcbatch {

using EnvironmentMap = std::map<std::string, std::string>;

/// Absolute paths; nothing of it need exist.
struct Places {
  std::string home;           ///< state: store, logs, keys
  std::string socket;         ///< the engine's listener; may be longer than a socket address holds
  std::string configuration;  ///< the one YAML file
  bool configuration_is_named{false};  ///< by HPCBATCH_CONFIG: then the file must exist
  friend bool operator==(const Places&, const Places&) = default;
};

/// The rules of the XDG base directories, with HPCBATCH_HOME and HPCBATCH_CONFIG before them. Pure:
/// looks only at `environment`.  Refused where a path of ours is not absolute, or where HOME would
/// be needed and is not set.
Result<Places> find_places(const EnvironmentMap& environment);

/// Where plugins that come along with a program may lie, seen from the folder above its own: wheels
/// have `libexec`, because `pip install --target` leaves out what is in `lib`.
inline constexpr std::array<std::string_view, 2> kOwnPlugins{"lib/hpcbatch", "libexec/hpcbatch"};

/// What the last engine of a home says of its end, in one word: whether leases of its pilots were left
/// to the next one.
inline std::string ended_file(const std::string& home) {
  return home + "/engine.end";
}
inline constexpr std::string_view kEndedEmpty = "empty", kEndedLeaving = "leaving";

/// The model of how long batch jobs of a site wait, where one was learned.
inline std::string wait_model_path(const std::string& home, const std::string& site) {
  return home + "/models/" + site + ".waits";
}

/// How long others' batch jobs have run at a site, as looks at its queue showed.
inline std::string run_times_path(const std::string& home, const std::string& site) {
  return home + "/models/" + site + ".run-times";
}

}  // namespace hpcbatch

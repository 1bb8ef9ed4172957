// Where hpcbatch keeps its state, its socket and its configuration.
#pragma once

#include "hpcbatch/result.hpp"

#include <map>
#include <string>

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

}  // namespace hpcbatch

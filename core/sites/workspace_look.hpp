// What a look at a site's workspace finds, where it lies: the parts of its path and of the folders in
// it, for the guard of trusted paths (posix/trusted_path.hpp), and whether it is the one that was used
// before, not the bare place where it is mounted.
#pragma once

#include "hpcbatch/command_line.hpp"
#include "hpcbatch/result.hpp"
#include "posix/trusted_path.hpp"

#include <optional>
#include <string>
#include <vector>

namespace hpcbatch {

/// Looks at the workspace, at what is above it and at the folders in it, where the command runs; asks
/// for accounts and groups there, and for the trusted one (empty: none).  Pure.
CommandLine look_at_workspace(const std::string& workspace, const std::string& trust_group);

struct WorkspaceFinding {
  std::vector<PathFacts> paths;  ///< of the workspace, then of the folders in it that are there
  bool is_bare{false};           ///< nothing of ours is there
  std::string file_system;  ///< kind and number of the one it is on, or would be; empty: not known
};

/// Nothing where it could not be looked at.
std::optional<WorkspaceFinding> read_workspace(const CommandOutput& output);

/// What the guard says: a refusal before what is only to be said.  Pure.
std::optional<Distrust> distrust(const WorkspaceFinding& finding, const std::string& trust_group);

/// Where nothing of ours is left in a workspace that was on the file system `before` (empty: it is
/// new): that must not be made again where its file system is only not mounted.  A file system in
/// memory has another number after each start of its machine.
std::optional<std::string> refusal_of_bare(const WorkspaceFinding& finding,
                                           const std::string& before, const std::string& workspace);

}  // namespace hpcbatch

// Whether a site's workspace is its user's alone, since who can write there can have programs run
// as him, and whether it is the one that was used before, not the bare place where it is mounted.
#pragma once

#include "hpcbatch/command_line.hpp"
#include "hpcbatch/result.hpp"

#include <optional>
#include <string>

namespace hpcbatch {

/// Looks at the folders of the workspace that are there, where the command runs.  Pure.
CommandLine look_at_workspace(const std::string& workspace);

struct WorkspaceFinding {
  std::string others;       ///< a folder that is another user's, or that all may write; empty: none
  std::string group;        ///< one that its group may write; empty: none
  bool is_bare{false};      ///< nothing of ours is there
  std::string file_system;  ///< kind and number of the one it is on, or would be; empty: not known
};

/// Nothing where it could not be looked at.
std::optional<WorkspaceFinding> read_workspace(const CommandOutput& output);

/// Where nothing of ours is left in a workspace that was on the file system `before` (empty: it is
/// new): that must not be made again where its file system is only not mounted.  A file system in
/// memory has another number after each start of its machine.
std::optional<std::string> refusal_of_bare(const WorkspaceFinding& finding,
                                           const std::string& before, const std::string& workspace);

/// What a person has to do about a folder that others may write.
std::string refusal_of(const WorkspaceFinding& finding);

}  // namespace hpcbatch

// Whether a site's workspace is its user's alone: who can write there can have programs run as him.
#pragma once

#include "hpcbatch/command_line.hpp"
#include "hpcbatch/result.hpp"

#include <optional>
#include <string>

namespace hpcbatch {

/// Looks at the folders of the workspace that are there, where the command runs.  Pure.
CommandLine look_at_workspace(const std::string& workspace);

struct WorkspaceFinding {
  std::string others;  ///< a folder that is another user's, or that all may write; empty: none
  std::string group;   ///< one that its group may write; empty: none
};

/// Nothing where it could not be looked at.
std::optional<WorkspaceFinding> read_workspace(const CommandOutput& output);

/// What a person has to do about a folder that others may write.
std::string refusal_of(const WorkspaceFinding& finding);

}  // namespace hpcbatch

// What of a workspace's files is needed by nobody any more, and may go: old logs, scripts and
// outputs of batch jobs, programs of earlier versions.
#pragma once

#include "model/time.hpp"

#include "hpcbatch/command_line.hpp"
#include "hpcbatch/result.hpp"

#include <cstdint>
#include <set>
#include <string>
#include <vector>

namespace hpcbatch {

struct WorkspaceFile {
  std::string path;  ///< relative to the workspace: "logs/NAME.0.17.log"
  std::uint64_t bytes{0};
  Duration age{};  ///< since it was written last, by the site's own clock
};

struct KeepRules {
  std::string prefix;              ///< of our allocations' names; what is not ours is left alone
  std::set<std::string> needed;    ///< names of allocations that live, or that a kept result names
  bool has_live{false};            ///< one of the site's allocations may run an earlier program
  std::set<std::string> programs;  ///< of now, as in `path`
  Duration keep_for{};
  std::uint64_t keep_limit{0};  ///< bytes
};

struct Cleaning {
  std::vector<WorkspaceFile> gone;  ///< oldest first
  std::uint64_t gone_bytes{0};
  std::uint64_t kept_files{0};
  std::uint64_t kept_bytes{0};
};

/// Prints the files in question; fails where the workspace is not there.
CommandLine list_files_of(const std::string& workspace);
Result<std::vector<WorkspaceFile>> read_listing(const CommandOutput& output);

/// Goes: what is ours, needed by nothing and older than `keep_for`, and of the rest the oldest,
/// until what is needed by nothing is within `keep_limit`.  Nothing goes that was written within
/// the last hour: an allocation may be newer than what is known of it here.
Cleaning decide_cleaning(std::vector<WorkspaceFile> files, const KeepRules& rules);

}  // namespace hpcbatch

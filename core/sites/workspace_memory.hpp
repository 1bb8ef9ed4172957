// What is kept of and in a site's workspace: its file system and how far ids have come, and
// files that may go.
#pragma once

#include "hpcbatch/command_line.hpp"
#include "hpcbatch/result.hpp"
#include "model/ids.hpp"

#include <cstdint>
#include <set>
#include <string>
#include <vector>

namespace hpcbatch {

// On which file system the workspace of each site was: small files in the engine's home, so that
// one whose file system is not mounted is told from a new one.

/// The file for a site.
std::string workspace_memory(const std::string& home, const std::string& site);
/// Empty where nobody knows; `workspace`: a site may have been given another one since.
std::string remembered_file_system(const std::string& memory, const std::string& workspace);
/// Says in the log where it cannot: the workspace then counts as new.
void remember_file_system(const std::string& memory, const std::string& workspace,
                          const std::string& file_system);

// How far an engine's ids and starts have come, in a small file of each workspace that it sees: a home
// that was put back from a backup does not know what was given since.

struct GivenIds {
  std::uint64_t highest{0};  ///< id of a submission
  std::uint64_t starts{0};   ///< of the engine
  friend bool operator==(const GivenIds&, const GivenIds&) = default;
};

/// Zeros where there is no such file, or it is not ours alone.  `engine`: its name, because several
/// may share a workspace.
GivenIds read_given_ids(const std::string& workspace, const std::string& engine);
/// Makes no workspace.  What cannot be written is lost: the next time has more.
void write_given_ids(const std::string& workspace, const std::string& engine,
                     const GivenIds& given);

// What of a workspace's files is needed by nobody any more, and may go: old logs, scripts and
// outputs of batch jobs, programs of earlier versions.

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

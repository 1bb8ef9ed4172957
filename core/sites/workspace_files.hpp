// Files of a site: handled in place where its transport sees them in this machine's file system, by
// short commands there otherwise.  All of it blocks.
#pragma once

#include "hpcbatch/command_line.hpp"
#include "hpcbatch/result.hpp"
#include "hpcbatch/transport.hpp"
#include "posix/trusted_path.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace hpcbatch {

/// One file to write from memory.
struct FileText {
  std::string path;  ///< absolute
  std::string text;
  std::uint32_t mode{0600};
};

/// In order; each appears whole, its checksum compared, or not at all.  Parent directories are made, mode
/// 0700.
Result<void> write_files(Transport& transport, const std::vector<FileText>& files,
                         Deadline deadline);
/// Up to `length` bytes from `offset`; fewer at the file's end.
Result<std::string> read_part(Transport& transport, const std::string& path, std::uint64_t offset,
                              std::uint64_t length, Deadline deadline);
Result<std::string> read_whole(Transport& transport, const std::string& path, Deadline deadline);
/// Names in a directory, sorted, none of them `.` or `..`; an absent directory is empty.
Result<std::vector<std::string>> list_folder(Transport& transport, const std::string& directory,
                                             Deadline deadline);
/// Files and whole directories, links never followed; what is already gone is no error.
Result<void> remove_files(Transport& transport, const std::vector<std::string>& paths,
                          Deadline deadline);

// What a look at a site's workspace finds, where it lies: the parts of its path and of the folders in
// it, for the guard of trusted paths (posix/trusted_path.hpp), and whether it is the one that was used
// before, not the bare place where it is mounted.

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

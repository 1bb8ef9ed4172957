// Files of a site: handled in place where its transport sees them in this machine's file system, by
// short commands there otherwise.  All of it blocks.
#pragma once

#include "hpcbatch/result.hpp"
#include "hpcbatch/transport.hpp"

#include <cstdint>
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

}  // namespace hpcbatch

// Files of a file system that we see ourselves: each written whole or not at all.
#pragma once

#include "hpcbatch/transport.hpp"

#include <string>
#include <vector>

namespace hpcbatch {

/// Copies a regular file; the destination appears complete, on disk, under its name, or not at all.
Result<void> copy_whole(const Copy& file, Deadline deadline);
Result<void> write_whole(const FileText& file, Deadline deadline);
Result<std::string> read_part(const std::string& path, std::uint64_t offset, std::uint64_t length,
                              Deadline deadline);
Result<std::vector<std::string>> names_in(const std::string& directory);
Result<void> remove_all(const std::string& path);

}  // namespace hpcbatch

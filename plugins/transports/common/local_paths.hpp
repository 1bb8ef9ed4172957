// What is the same for all files of this machine: how a failure is told, and the folders that a
// file needs.
#pragma once

#include "hpcbatch/result.hpp"

#include <filesystem>
#include <string>

namespace hpcbatch {

/// "cannot WHAT: the system's word"; Rejected where a person must mend it.
Error local_error(const std::string& what, int error);
/// With all above it, mode 0700.
Result<void> make_directories(const std::filesystem::path& directory);

}  // namespace hpcbatch

// Stages a job's inputs into its folder.
#pragma once

#include "hpcbatch/result.hpp"
#include "hpcbatch/tool.hpp"

#include <cstdint>
#include <string>

namespace hpcbatch {

/// Looks at an input without reading it: a regular file.  A job of another user than ours may only
/// name what that user can read: root opens it as him, another engine's user computes it from modes
/// and ACLs of the file and of all folders above it.  The text of an error says which file and why.
Result<InputFile> look_at_input(const std::string& path, std::uint32_t owner_of_job);

/// Copies it to `target`, which must not exist.  A file that changes meanwhile is copied once more,
/// then refused as changed, and so is one of more than `most` bytes.  Holes stay holes.  Its bytes.
/// Blocks for as long as the copying takes.
Result<std::uint64_t> stage_input(const std::string& path, const std::string& target,
                                  std::uint32_t owner_of_job, std::uint64_t most);

/// Whether two paths lead the job's owner to one file.
bool are_same_file(const std::string& a, const std::string& b, std::uint32_t owner_of_job);

}  // namespace hpcbatch

// Stages a job's inputs into its folder.
#pragma once

#include "hpcbatch/result.hpp"
#include "hpcbatch/tool.hpp"

#include <cstdint>
#include <string>

namespace hpcbatch {

/// Looks at an input without reading it: a regular file that we can open.  A job of another user
/// than ours may only name what that user could read, by the file's mode and by those of all
/// folders above it, since we would read it with our rights.  The text of an error says which file
/// and why.
Result<InputFile> look_at_input(const std::string& path, std::uint32_t owner_of_job);

/// Copies it to `target`, which must not exist.  A file that changes meanwhile is copied once more,
/// then refused as changed.  Blocks for as long as the copying takes.
Result<void> stage_input(const std::string& path, const std::string& target,
                         std::uint32_t owner_of_job);

}  // namespace hpcbatch

// A result that is written on this machine: as a whole or not at all.
#pragma once

#include "staging/stage.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace hpcbatch {

/// Makes the directories above `path`, writes aside, syncs and renames.  Blocks.
std::optional<StageError> write_whole_file(const std::string& path, std::string_view bytes,
                                           std::uint32_t mode);
/// Whether a file could be written there.
std::optional<StageError> make_folder_of(const std::string& path);

}  // namespace hpcbatch

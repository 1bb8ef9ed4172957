// Whose files we load as code: only root's and our own, where nobody else can write.
#pragma once

#include <filesystem>
#include <optional>
#include <string>

#include <sys/stat.h>
#include <sys/types.h>

namespace hpcbatch {

/// What is wrong with the owner or mode of a file or directory, as the end of a sentence; nothing
/// if `user` may trust it.
std::optional<std::string> distrust(const struct stat& facts, uid_t user);

/// Looks at an absolute path of a plugin, at its directory and at all above that, before anything
/// of it runs.  One sentence that says what to do, or nothing.
std::optional<std::string> untrusted_plugin(const std::filesystem::path& file, uid_t user);

}  // namespace hpcbatch

// Whose files we load as code: only root's and our own, where nobody else can write.
#pragma once

#include <filesystem>
#include <optional>
#include <string>

namespace hpcbatch {

/// Asks the guard of trusted paths about a plugin before anything of it runs.  One sentence that says
/// what to do, or nothing.
std::optional<std::string> untrusted_plugin(const std::filesystem::path& file);

}  // namespace hpcbatch

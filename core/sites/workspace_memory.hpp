// On which file system the workspace of each site was: small files in the engine's home, so that
// one whose file system is not mounted is told from a new one.
#pragma once

#include <string>

namespace hpcbatch {

/// The file for a site.
std::string workspace_memory(const std::string& home, const std::string& site);
/// Empty where nobody knows; `workspace`: a site may have been given another one since.
std::string remembered_file_system(const std::string& memory, const std::string& workspace);
/// Says in the log where it cannot: the workspace then counts as new.
void remember_file_system(const std::string& memory, const std::string& workspace,
                          const std::string& file_system);

}  // namespace hpcbatch

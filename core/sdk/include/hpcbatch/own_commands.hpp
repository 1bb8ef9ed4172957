// The folders in which `hpcbatch slurm-commands` and `pbs-commands` have put sbatch, qsub and their
// relatives: what looks for a batch system's own commands passes them over.
#pragma once

#include <algorithm>
#include <string>
#include <string_view>

#include <unistd.h>

namespace hpcbatch {

inline constexpr const char* kOwnCommandsMark = ".hpcbatch-slurm-commands";
/// Set to 1: our commands hand everything to those of the batch system.
inline constexpr const char* kRealCommands = "HPCBATCH_SLURM_REAL";
inline constexpr const char* kRealPbsCommands = "HPCBATCH_PBS_REAL";

inline bool has_own_commands(const std::string& folder) {
  return ::access((folder + "/" + kOwnCommandsMark).c_str(), F_OK) == 0;
}

/// A search path without such folders.
inline std::string without_own_commands(std::string_view path) {
  std::string kept;
  bool any = false;
  for (std::size_t begin = 0; begin <= path.size();) {
    const std::size_t end = std::min(path.find(':', begin), path.size());
    const std::string folder(path.substr(begin, end - begin));
    begin = end + 1;
    if (has_own_commands(folder.empty() ? "." : folder)) continue;
    kept += (any ? ":" : "") + folder;
    any = true;
  }
  return kept;
}

}  // namespace hpcbatch

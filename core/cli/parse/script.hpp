// Batch scripts: what their comments ask for -> options of `submit`, and how they are run.
#pragma once

#include "cli/parse/script_variables.hpp"

#include <array>
#include <string>
#include <string_view>
#include <vector>

namespace hpcbatch {

/// Variables of SLURM's that have another value for each task; the last one in arrays alone.
inline constexpr std::array<std::string_view, 3> kOfEachTask{
    "SLURM_CPUS_PER_TASK", "SLURM_CPUS_ON_NODE", "SLURM_ARRAY_TASK_ID"};

struct Script {
  /// Options of `submit`, as words of its command line.
  std::vector<std::string> options;
  std::vector<std::string> command;
  /// What was read of lines for SLURM, and what was not: sentences for the user.
  std::vector<std::string> notes{};
  /// Of batch systems, which it relies on.
  std::vector<BatchVariable> variables{};
  /// It has lines for SLURM or names variables of SLURM's; its command sets kOfEachTask itself.
  bool knows_slurm{false};
  /// As sbatch does it where nothing else is said.
  bool errors_go_to_output{false};
};

/// Lines `#HPCBATCH --cpus 4` hold as they stand, lines `#SBATCH` (sbatch(1)) where they mean the
/// same; both end at the first line that is neither a comment nor empty.  A script of a shell is
/// run as it is now, whatever becomes of the file; one of another interpreter from its file.
/// `file`: absolute, as the user wants it called.  Throws std::invalid_argument with one sentence
/// where a line asks for what is not to be had, or is another batch system's.
Script read_script(const std::string& text, const std::string& file,
                   const std::vector<std::string>& arguments);

/// What runs a script, less what read_script has put around it: `/bin/bash job.sh a b`; any other
/// command as it is.
std::vector<std::string> command_of_script(std::vector<std::string> command);

}  // namespace hpcbatch

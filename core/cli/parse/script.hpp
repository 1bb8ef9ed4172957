// Batch scripts: what their comments ask for -> options of `submit`, and how they are run.
#pragma once

#include "batch/directives.hpp"
#include "cli/parse/script_run.hpp"
#include "cli/parse/script_variables.hpp"

#include <array>
#include <string>
#include <string_view>
#include <vector>

namespace hpcbatch {

/// Variables of SLURM's that a script without lines for it finds; the last one in arrays alone.
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
  /// Whose lines it has, and what they come to; its command sets the variables of that system.
  BatchSystem system{BatchSystem::None};
  batch::Terms terms{};
  /// It has no such lines and names variables of SLURM's: its command sets kOfEachTask itself.
  bool names_slurm{false};
};

/// What stands beside a script: of the options of sbatch or qsub, as words, those that hold where no
/// line of it says otherwise, and those that hold whatever its lines say; options of submit that hold
/// so.
struct WordsBeside {
  std::vector<std::string> first{}, last{};
  std::vector<std::string> submit{};
};

/// The option that a word says, `--cpus` of `--cpus=4`; empty: it is a value.  Two that contradict
/// each other are one.
std::string option_in(const std::string& word);

/// Lines `#HPCBATCH --cpus 4` hold as they stand, over lines `#SBATCH` and, where there are none of
/// these, `#PBS`; all end at the first line that is neither a comment nor empty.  A script with lines
/// for a batch system runs from a copy, as there.  Without them one of a shell is run as it is now,
/// whatever becomes of the file; one of another interpreter from its file.  `file`: absolute, as the
/// user wants it called.  Throws std::invalid_argument with one sentence where a line asks for what
/// is not to be had, or is another batch system's.
/// `of`: it is that system's, whether or not it has lines for it, and then `beside` holds, too.
Script read_script(const std::string& text, const std::string& file,
                   const std::vector<std::string>& arguments, BatchSystem of = BatchSystem::None,
                   const WordsBeside& beside = {});

/// What runs a script, less what read_script has put around it: `/bin/bash job.sh a b`; any other
/// command as it is.
std::vector<std::string> command_of_script(std::vector<std::string> command);

}  // namespace hpcbatch

// Batch scripts: what their comments ask for -> options of `submit`, and how they are run.
#pragma once

#include "batch/directives.hpp"

#include <array>
#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace hpcbatch {

// The command that runs a batch script: what its batch system would have set is set, and the script
// runs from a copy.

enum class BatchSystem : char { None = 'n', Slurm = 's', Pbs = 'p' };

/// What a script is told beside its variables.
struct BatchRun {
  BatchSystem system{BatchSystem::None};
  bool says_cpus{false};              ///< SLURM_CPUS_PER_TASK is there
  bool says_memory_otherwise{false};  ///< than for all of a node: SLURM_MEM_PER_NODE is not there
  std::string signal{};               ///< goes to it so many seconds after its start; empty: none
  std::string signal_after{};
  bool signals_steps{false};  ///< it goes to what srun starts
};

/// The text of a script as variables NAME=VALUE of a task: nothing is replaced there.  Throws
/// std::invalid_argument where it is longer than the system hands to a program.
std::vector<std::string> text_variables(const std::string& text, const std::string& file);
/// What a shell evaluates to run such a text.
const std::string& run_text();

/// Runs `interpreter COPY ARGUMENTS`, with batch_run_variable and text_variables in its environment.
std::string batch_run_variable();
std::vector<std::string> batch_command(const BatchRun& run, const std::string& file,
                                       const std::vector<std::string>& interpreter,
                                       const std::vector<std::string>& arguments);

/// Whether it sets a variable for each task.
bool is_set_by_run(BatchSystem system, std::string_view name);

/// Whether batch_command made it; puts other facts into one that did.
bool is_batch_command(const std::vector<std::string>& command);
void set_run(std::vector<std::string>& command, const BatchRun& run);
/// `/bin/bash job.sh a b` again; the second without its interpreter.
std::vector<std::string> without_batch(const std::vector<std::string>& command);
std::vector<std::string> script_and_arguments(const std::vector<std::string>& command);

// Variables of batch systems that a script relies on.

struct BatchVariable {
  std::string name;
  std::size_t line{0};  ///< where it stands first; from 1
};

/// SLURM_*, PBS_*, LSB_* and SGE_* whose value the script takes: `$NAME`, `${NAME%.*}`, arithmetic,
/// `environ["NAME"]` and their like, each name once, in the order of the text.  Left out is what has
/// a default where it stands (`${NAME:-1}`, `getenv("NAME", "1")`), what the script gives a value
/// before, what it only asks whether it is there (`-n "$NAME"`), and comments.  Text in single
/// quotes counts: `trap 'rm -r $NAME' EXIT` uses it.
std::vector<BatchVariable> batch_variables_of(std::string_view text);

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
  std::vector<std::string> variables{};  ///< of sbatch; over the script's lines, below `last`
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

// The command that runs a batch script: what its batch system would have set is set, and the script
// runs from a copy.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace hpcbatch {

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

}  // namespace hpcbatch

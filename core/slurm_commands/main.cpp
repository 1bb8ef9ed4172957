// The program `hpcbatch-slurm`: Slurm's commands for tasks.  It is called by their names, as links
// that `hpcbatch slurm-commands` makes.
#include "hpcbatch/own_commands.hpp"
#include "slurm_commands/commands.hpp"
#include "slurm_commands/options.hpp"
#include "slurm_commands/program.hpp"

#include <array>
#include <string>
#include <string_view>
#include <utility>

#include <unistd.h>

namespace {

using namespace hpcbatch;
using namespace hpcbatch::slurm_commands;

int salloc(const Call& /*call*/, const Session& /*session*/) {
  throw CommandFailed(
      "salloc: error: tasks of hpcbatch have no allocation of their own to wait in; run a "
      "command with hpcbatch run -- COMMAND, or ask the cluster: HPCBATCH_SLURM_REAL=1 salloc ...");
}

constexpr std::array<std::pair<std::string_view, Program::Run>, 10> kCommands{
    {{"sbatch", sbatch},
     {"squeue", squeue},
     {"sacct", sacct},
     {"scancel", scancel},
     {"scontrol", scontrol},
     {"sinfo", sinfo},
     {"srun", srun},
     {"sacctmgr", sacctmgr},
     {"sshare", sshare},
     {"salloc", salloc}}};

std::string unreachable(const std::string& command) {
  const std::string reason = "Unable to contact slurm controller (connect failure)";
  if (command == "sbatch") return "sbatch: error: Batch job submission failed: " + reason;
  if (command == "squeue" || command == "scontrol") return "slurm_load_jobs error: " + reason;
  if (command == "sinfo") return "slurm_load_partitions: " + reason;
  return command + ": error: " + reason;
}

constexpr Program kProgram{.name = "hpcbatch-slurm",
                           .commands = kCommands,
                           .version = kVersion,
                           .has_version_letter = true,
                           .real = kRealCommands,
                           .verb = "slurm-commands",
                           .before_error = ": error: ",
                           .unreachable = unreachable,
                           .unreachable_code = 1};

}  // namespace

int main(int argc, char** argv) {
  // Nothing that ends with the process is of any use to it.
  ::_exit(run_program(kProgram, argc, argv));
}

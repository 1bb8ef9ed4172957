// The program `hpcbatch-pbs`: OpenPBS's commands for tasks.  It is called by their names, as links that
// `hpcbatch pbs-commands` makes.
#include "hpcbatch/own_commands.hpp"
#include "pbs_commands/commands.hpp"
#include "slurm_commands/program.hpp"

#include <array>
#include <string>
#include <string_view>
#include <utility>

#include <unistd.h>

namespace {

using namespace hpcbatch;
using namespace hpcbatch::pbs_commands;
using hpcbatch::slurm_commands::Program;

constexpr std::array<std::pair<std::string_view, Program::Run>, 10> kCommands{
    {{"qsub", qsub},
     {"qstat", qstat},
     {"qdel", qdel},
     {"qhold", qhold},
     {"qrls", qrls},
     {"qrerun", qrerun},
     {"qmove", qmove},
     {"qalter", qalter},
     {"qsig", qsig},
     {"pbsnodes", pbsnodes}}};

constexpr int kConnectionRefused = 111;

std::string unreachable(const std::string& command) {
  return "Connection refused\n" + command + ": cannot connect to server " + kServer +
         " (errno=" + std::to_string(kConnectionRefused) + ")";
}

constexpr Program kProgram{.name = "hpcbatch-pbs",
                           .commands = kCommands,
                           .version = kVersion,
                           .has_version_letter = false,
                           .real = kRealPbsCommands,
                           .verb = "pbs-commands",
                           .before_error = ": ",
                           .unreachable = unreachable,
                           .unreachable_code = kConnectionRefused};

}  // namespace

int main(int argc, char** argv) {
  // Nothing that ends with the process is of any use to it.
  ::_exit(slurm_commands::run_program(kProgram, argc, argv));
}

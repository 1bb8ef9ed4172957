// The program `hpcbatch-slurm`: Slurm's commands for tasks.  It is called by their names, as links
// that `hpcbatch slurm-commands` makes.
#include "cli/process/exit.hpp"
#include "cli/process/surroundings.hpp"
#include "documents/view.hpp"
#include "slurm_commands/commands.hpp"
#include "slurm_commands/options.hpp"

#include <array>
#include <cstdio>
#include <exception>
#include <string>
#include <string_view>
#include <utility>

#include <unistd.h>

namespace {

using namespace hpcbatch;
using namespace hpcbatch::slurm_commands;

using Run = int (*)(const Call& call, const Session& session);

constexpr std::array<std::pair<std::string_view, Run>, 7> kCommands{{{"sbatch", sbatch},
                                                                     {"squeue", squeue},
                                                                     {"sacct", sacct},
                                                                     {"scancel", scancel},
                                                                     {"scontrol", scontrol},
                                                                     {"sinfo", sinfo},
                                                                     {"srun", srun}}};

bool asks_for(const Call& call, std::string_view letter, std::string_view word) {
  return !call.words.empty() && (call.words.front() == letter || call.words.front() == word);
}

/// In the words on which clients try again.
std::string unreachable(const std::string& command) {
  const std::string reason = "Unable to contact slurm controller (connect failure)";
  if (command == "sbatch") return "sbatch: error: Batch job submission failed: " + reason;
  if (command == "squeue" || command == "scontrol") return "slurm_load_jobs error: " + reason;
  if (command == "sinfo") return "slurm_load_partitions: " + reason;
  return command + ": error: " + reason;
}

void complain(const std::string& text) {
  std::fflush(stdout);
  if (!text.empty()) std::fprintf(stderr, "%s\n", text.c_str());
}

int do_command(const Call& call) {
  // Before all else: an engine that asks for a version means the real one's.
  if (is_for_real(call)) become_real(call, call.words);
  if (asks_for(call, "-V", "--version")) {
    std::printf("%s\n", kVersion);
    return 0;
  }
  if (asks_for(call, "--help", "--usage")) {
    std::printf("Usage: %s [OPTIONS...]\n%s of hpcbatch, for tasks: its options are Slurm's.  %s\n",
                call.command.c_str(), call.command.c_str(),
                "HPCBATCH_SLURM_REAL=1 calls the cluster's own; docs/slurm-commands.md says more.");
    return 0;
  }
  if (!call.words.empty() && call.words.front() == "--real" && call.command == "sbatch")
    become_real(call, {call.words.begin() + 1, call.words.end()});
  if (call.command == "salloc")
    throw CommandFailed(
        "salloc: error: tasks of hpcbatch have no allocation of their own to wait in; run a "
        "command "
        "with hpcbatch run -- COMMAND, or ask the cluster: HPCBATCH_SLURM_REAL=1 salloc ...");
  const auto places = find_places(call.environment);
  if (!places) throw CommandFailed(call.command + ": error: " + places.error().text);
  Interrupt interrupt;
  const Session session{*places, interrupt};
  for (const auto& [name, run] : kCommands) {
    if (name != call.command) continue;
    try {
      return run(call, session);
    } catch (const InterruptedByUser&) {
      const int number = interrupt.take();
      return number == 0 ? kExitInterrupted : 128 + number;
    }
  }
  throw CommandFailed(
      "hpcbatch-slurm is called as sbatch, squeue, sacct, scancel, scontrol, sinfo, "
      "srun or salloc; 'hpcbatch slurm-commands FOLDER' makes them");
}

int run_call(const Call& call) {
  try {
    return do_command(call);
  } catch (const CommandFailed& error) {
    complain(error.what());
    return error.exit_code();
  } catch (const CommandError& error) {
    if (error.exit_code() == kExitNoEngine) complain(unreachable(call.command));
    complain(call.command + ": error: " + error.what());
  } catch (const DocumentError& error) {
    complain(call.command + ": error: " + error.what());
  } catch (const std::exception& error) {
    complain(call.command + ": error: internal error: " + error.what());
  }
  return 1;
}

}  // namespace

int main(int argc, char** argv) {
  Call call;
  call.words.assign(argv + (argc > 0 ? 1 : 0), argv + argc);
  const std::string_view path = argc > 0 ? argv[0] : "";
  call.command = path.substr(path.rfind('/') + 1);
  if (call.command == "hpcbatch-slurm" && !call.words.empty()) {
    call.command = call.words.front();
    call.words.erase(call.words.begin());
  }
  call.environment = own_environment();
  int code = run_call(call);
  if ((std::fflush(stdout) != 0 || std::ferror(stdout) != 0) && code == 0) code = 1;
  // Nothing that ends with the process is of any use to it.
  ::_exit(code);
}

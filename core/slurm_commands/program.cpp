#include "slurm_commands/program.hpp"

#include "cli/process/process.hpp"
#include "documents/view.hpp"
#include "slurm_commands/options.hpp"

#include <cstdio>
#include <exception>

namespace hpcbatch::slurm_commands {
namespace {

bool asks_for(const Call& call, std::string_view letter, std::string_view word) {
  return !call.words.empty() && (call.words.front() == letter || call.words.front() == word);
}

void complain(const std::string& text) {
  std::fflush(stdout);
  if (!text.empty()) std::fprintf(stderr, "%s\n", text.c_str());
}

std::string names_of(const Program& program) {
  std::string names;
  for (const auto& [name, run] : program.commands) (names += names.empty() ? "" : ", ") += name;
  return names;
}

int do_command(const Program& program, const Call& call) {
  // Before all else: an engine that asks for a version means the real one's.
  if (is_for_real(call)) become_real(call, call.words);
  if (asks_for(call, program.has_version_letter ? "-V" : "--version", "--version")) {
    std::printf("%s\n", program.version);
    return 0;
  }
  if (asks_for(call, "--help", "--usage")) {
    std::printf(
        "Usage: %s [OPTIONS...]\n%s of hpcbatch, for tasks: its options are the batch system's.  "
        "%s=1 calls the cluster's own; docs/%s.md says more.\n",
        call.command.c_str(), call.command.c_str(), program.real, program.verb);
    return 0;
  }
  if (asks_for(call, "--real", "--real") && (call.command == "sbatch" || call.command == "qsub"))
    become_real(call, {call.words.begin() + 1, call.words.end()});
  const auto places = find_places(call.environment);
  if (!places)
    throw CommandFailed(call.command + std::string(program.before_error) + places.error().text);
  Interrupt interrupt;
  const Session session{*places, interrupt};
  for (const auto& [name, run] : program.commands) {
    if (name != call.command) continue;
    try {
      return run(call, session);
    } catch (const InterruptedByUser&) {
      const int number = interrupt.take();
      return number == 0 ? kExitInterrupted : 128 + number;
    }
  }
  throw CommandFailed(std::string(program.name) + " is called as one of " + names_of(program) +
                      "; 'hpcbatch " + program.verb + " FOLDER' makes them");
}

int run_call(const Program& program, const Call& call) {
  const std::string begin = call.command + std::string(program.before_error);
  try {
    return do_command(program, call);
  } catch (const CommandFailed& error) {
    complain(error.what());
    return error.exit_code();
  } catch (const CommandError& error) {
    if (error.exit_code() == kExitNoEngine) complain(program.unreachable(call.command));
    complain(begin + error.what());
    if (error.exit_code() == kExitNoEngine) return program.unreachable_code;
  } catch (const DocumentError& error) {
    complain(begin + error.what());
  } catch (const std::exception& error) {
    complain(begin + "internal error: " + error.what());
  }
  return 1;
}

}  // namespace

int run_program(const Program& program, int argc, char** argv) {
  Call call;
  call.real = program.real;
  call.words.assign(argv + (argc > 0 ? 1 : 0), argv + argc);
  const std::string_view path = argc > 0 ? argv[0] : "";
  call.command = path.substr(path.rfind('/') + 1);
  if (call.command == program.name && !call.words.empty()) {
    call.command = call.words.front();
    call.words.erase(call.words.begin());
  }
  call.environment = own_environment();
  const int code = run_call(program, call);
  if ((std::fflush(stdout) != 0 || std::ferror(stdout) != 0) && code == 0) return 1;
  return code;
}

}  // namespace hpcbatch::slurm_commands

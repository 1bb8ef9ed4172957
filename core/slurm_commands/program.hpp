// What programs have in common that are a batch system's commands under several names: Slurm's and
// PBS's.
#pragma once

#include "slurm_commands/engine_jobs.hpp"

#include <span>
#include <string>
#include <string_view>
#include <utility>

namespace hpcbatch::slurm_commands {

struct Program {
  using Run = int (*)(const Call& call, const Session& session);

  std::string_view name;  ///< of its file, `hpcbatch-slurm`
  std::span<const std::pair<std::string_view, Run>> commands;
  const char* version;
  bool has_version_letter;  ///< `-V` asks for the version, too
  const char* real;         ///< the variable that hands all to the real commands
  const char* verb;         ///< of hpcbatch, which makes the links
  /// Stands behind the command's name before each message: `: error: `.
  std::string_view before_error;
  /// All of the text where the engine cannot be reached, in the words on which clients try again.
  std::string (*unreachable)(const std::string& command);
  int unreachable_code;  ///< what the command exits with then
};

/// All of main(): the exit code, with the output flushed.
int run_program(const Program& program, int argc, char** argv);

}  // namespace hpcbatch::slurm_commands

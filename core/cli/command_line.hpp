// The command line as a whole: parses, does what was asked, and turns every failure into one
// sentence and an exit code.
#pragma once

#include "cli/parse/command.hpp"

#include <string>

namespace hpcbatch {

/// What the command line itself knows nothing of.
struct Mains {
  EngineMain engine;  ///< `hpcbatch engine run`
  FsckMain fsck;
  SitesAddMain sites_add;
  std::string (*version)();  ///< what `--version` prints
};

/// All of main() but those.
int run_command_line(int argc, char** argv, const Mains& mains);

}  // namespace hpcbatch

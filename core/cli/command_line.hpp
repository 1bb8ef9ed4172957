// The command line as a whole: parses, does what was asked, and turns every failure into one
// sentence and an exit code.
#pragma once

#include "cli/engine_options.hpp"

namespace hpcbatch {

/// All of main() but the engine itself, which `engine_main` runs for `hpcbatch engine run`.
int run_command_line(int argc, char** argv, const EngineMain& engine_main);

}  // namespace hpcbatch

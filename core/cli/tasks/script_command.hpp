// `submit SCRIPT`: what the script asks for and what the command line says, together.
#pragma once

#include "cli/parse/command.hpp"
#include "cli/process/interrupt.hpp"

#include <string>

namespace hpcbatch {

/// Reads the script, and says on standard error what is taken from lines for SLURM.  What the
/// command line says holds over what the script does.  Throws CommandError.
SubmitCommand with_script(const SubmitCommand& asked, const std::string& directory,
                          const Interrupt& interrupt);

}  // namespace hpcbatch

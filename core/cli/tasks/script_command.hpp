// `submit SCRIPT`: what the script asks for and what the command line says, together.
#pragma once

#include "cli/parse/command.hpp"
#include "cli/parse/script.hpp"
#include "cli/process/exit.hpp"
#include "cli/process/surroundings.hpp"

#include <string>

namespace hpcbatch {

/// Reads the script, and says on standard error what is taken from lines for SLURM.  What the
/// command line says holds over what the script does.  A script that relies on variables of a batch
/// system which nobody sets is refused.  Throws CommandError.
SubmitCommand with_script(const SubmitCommand& asked, const Surroundings& around,
                          const Interrupt& interrupt);

/// The same of a text; `asked.script` is what its user calls it.  As sbatch it says nothing, and reads
/// `beside` with the script's lines.
SubmitCommand with_text_of_script(const SubmitCommand& asked, const std::string& text,
                                  const Surroundings& around, WordsBeside beside = {});

}  // namespace hpcbatch

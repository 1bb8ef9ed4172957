// Verbs that hand over to a program that is a part of an installation beside `hpcbatch` itself:
// `plugin`, `web` and `waits train`.
#pragma once

#include "cli/process/exit.hpp"

#include <string>
#include <vector>

namespace hpcbatch {

// Programs that are a part of an installation beside `hpcbatch` itself.

/// Becomes that program, with these words behind its name; it hears signals as we did before.
/// Throws CommandError (2) where it is not there.
[[noreturn]] void become_part(const std::string& name, std::vector<std::string> words,
                              const Interrupt& interrupt);

}  // namespace hpcbatch

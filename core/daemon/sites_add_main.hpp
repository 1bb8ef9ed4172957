// `hpcbatch sites add`: needs plugins, of which the command line knows nothing.
#pragma once

#include "cli/parse/command.hpp"

namespace hpcbatch {

/// Exit code 0: the entry was written, or shown where nobody could be asked; 1: nobody wanted it
/// written.  Throws CommandError.
int run_sites_add(const SitesAddOptions& options);

}  // namespace hpcbatch

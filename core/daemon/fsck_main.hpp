// `hpcbatch fsck`: needs the store, of which the command line knows nothing.
#pragma once

#include "cli/parse/command.hpp"

namespace hpcbatch {

/// Exit code 0: the store is good, or what could be read was written; 1: it is damaged; 2: it could
/// not be looked at.
int run_fsck(const FsckOptions& options);

}  // namespace hpcbatch

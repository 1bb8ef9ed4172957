// The engine as a process: reads the configuration, builds the objects, runs the loop until it is
// told to end.
#pragma once

#include "cli/parse/command.hpp"

namespace hpcbatch {

/// Exit codes: 0 ended as asked, 1 cannot go on, 2 the configuration is wrong, and those of
/// command.hpp.
int run_engine(const EngineOptions& options);

// An engine that a verb has started on its way lives on for others: what who gave that verb had
// lowered for it alone must not hold for them.

/// Niceness, cpus and limits become those of the first process of the user's session, as far as the
/// system allows it.  Before there are other threads, which would keep their own.
void take_limits_of_session();

// `hpcbatch fsck`: needs the store, of which the command line knows nothing.

/// Exit code 0: the store is good, or what could be read was written; 1: it is damaged; 2: it could
/// not be looked at.
int run_fsck(const FsckOptions& options);

// `hpcbatch sites add`: needs plugins, of which the command line knows nothing.

/// Exit code 0: the entry was written, or shown where nobody could be asked; 1: nobody wanted it
/// written.  Throws CommandError.
int run_sites_add(const SitesAddOptions& options);

}  // namespace hpcbatch

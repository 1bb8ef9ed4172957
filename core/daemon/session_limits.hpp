// An engine that a verb has started on its way lives on for others: what who gave that verb had
// lowered for it alone must not hold for them.
#pragma once

namespace hpcbatch {

/// Niceness, cpus and limits become those of the first process of the user's session, as far as the
/// system allows it.  Before there are other threads, which would keep their own.
void take_limits_of_session();

}  // namespace hpcbatch

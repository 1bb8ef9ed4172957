// Pilots that cannot write to their workspace start nothing; what has ended there waits for it, and
// its site is asked for no more of them.
#include "engine/engine.hpp"

namespace hpcbatch {

void Engine::handle(const WorkspaceSeen& event, Time now) {
  PilotState* pilot = pilots_.find(event.pilot);
  if (!pilot || !pilot->connected) return;
  pilot->workspace_trouble = event.trouble;
  sites_.workspace_seen(event.pilot, event.trouble, now);
  for (const TaskId task : pilot->leases) pilots_.lease(task)->waits_for_workspace = false;
  for (const AttemptId& attempt : event.ended) {
    Lease* lease = pilots_.current(event.pilot, attempt);
    if (!lease) continue;
    pilots_.started(*lease, now);
    lease->waits_for_workspace = true;
  }
  work_changed_ = true;
}

}  // namespace hpcbatch

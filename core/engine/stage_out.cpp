// Attempts that have ended at their pilots and whose outputs are fetched before the engine hears
// how: they hold no room there, and an end of their allocation does not touch them.
#include "engine/engine.hpp"

namespace hpcbatch {

void Engine::outputs_come(Lease& lease) {
  lease.state = Lease::State::Publishing;
  pilots_.leave_room(lease);
  work_changed_ = true;
  // Whoever cancelled it had told the pilot, which has done with it.
  if (lease.cancelled)
    actions_.push_back(KillAttempt{lease.pilot, lease.attempt, Failure::Cancelled, false});
}

void Engine::handle(const StageOutPending& event, Time) {
  for (const AttemptId& attempt : event.attempts) {
    Lease* lease = pilots_.current(attempt);
    if (lease && lease->pilot == event.pilot) outputs_come(*lease);
  }
}

void Engine::handle(const OutputsDelayed& event, Time) {
  const Lease* lease = pilots_.current(event.attempt);
  if (lease && lease->has_left) pilots_.delayed(*lease, event.why);
}

}  // namespace hpcbatch

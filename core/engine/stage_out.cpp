// Attempts that have ended at their pilots and whose outputs are fetched before the engine hears
// how: they hold no room there, and an end of their allocation does not touch them.
#include "engine/engine.hpp"

namespace hpcbatch {

void Engine::outputs_come(Lease& lease, Time now) {
  lease.state = Lease::State::Publishing;
  if (!lease.outputs_come_since) lease.outputs_come_since = now;
  pilots_.leave_room(lease);
  work_changed_ = true;
  // Whoever cancelled it had told the pilot, which has done with it.
  if (lease.cancelled)
    actions_.push_back(KillAttempt{lease.pilot, lease.attempt, Failure::Cancelled, false});
}

/// What the files of one that ran took to come and go.
void Engine::tell_staging(const Lease& lease, Outcome& outcome, Time now) {
  outcome.staged_in = tasks_.staged_in(lease.attempt.task, lease.held_by->site);
  // What is published where it runs is on no way.
  if (lease.outputs_come_since) outcome.staged_out = now - *lease.outputs_come_since;
}

void Engine::handle(const StageOutPending& event, Time now) {
  for (const AttemptId& attempt : event.attempts) {
    if (Lease* lease = pilots_.current(event.pilot, attempt)) outputs_come(*lease, now);
  }
}

void Engine::handle(const OutputsDelayed& event, Time) {
  const Lease* lease = pilots_.current(event.attempt);
  if (lease && lease->has_left) pilots_.delayed(*lease, event.why);
}

}  // namespace hpcbatch

// Tasks whose pilots died without a reason: they are tried one to a pilot, beside nothing dear, so
// that the next death names one of them and the others clear themselves.
#include "engine/engine.hpp"

#include <algorithm>
#include <utility>

namespace hpcbatch {
namespace {

using namespace std::chrono_literals;

// One that has run for so long lets the next one come.
constexpr Duration kTrial = 30s;
// What has run for so long is dear: suspects wait for a pilot without it, but not for ever.
constexpr Duration kDear = 1min;
constexpr Duration kSparesDear = 5min;
// So long a task whose node was not in doubt waits for another one's room, and so long one whose
// node was.
constexpr Duration kKeptAway = 30s;
constexpr Duration kKeptAwayInDoubt = 2min;

bool some_wait_to_decide(const ReadyQueue& queue) {
  return std::any_of(queue.waiting_apart().begin(), queue.waiting_apart().end(),
                     [&](const ClassId id) { return queue.get(id).apart.suspect > 1; });
}

}  // namespace

bool Engine::is_suspect(TaskId task) const {
  const TaskHistory* past = tasks_.history(task);
  return past && past->unexplained_deaths != 0;
}

/// Nothing is known of it yet: its pilot's death may be its doing as well.
bool Engine::is_unproven(const Lease& lease, Time at) {
  return !lease.suspect && (!lease.started || at - *lease.started < kTrial);
}

/// Whether a task of the class would be the only one on trial there, with nothing dear to lose.
/// Others come when it has lived for a while: what came with it could be what kills the pilot.
bool Engine::may_be_tried(const ResourceClass& its_class, const PilotState& pilot, Time now) const {
  if (pilot.on_trial) return false;
  if (its_class.apart.suspect == 0 || !its_class.keeps_away) return true;
  const bool decides = its_class.apart.suspect > 1;
  return std::none_of(pilot.in_room.begin(), pilot.in_room.end(), [&](const TaskId task) {
    const Lease& lease = *pilots_.lease(task);
    // Suspects of one death wait for each other's trial only, not until the others are dear.
    const bool is_dear = !lease.suspect && lease.started && now - *lease.started >= kDear;
    return is_dear || (decides && !lease.suspect && !lease.proven);
  });
}

/// Looked at now and then and not by the clock, so that what found no room knows when to look
/// again.
void Engine::note_proven(PilotState& pilot, Time now) {
  for (const TaskId task : pilot.in_room) {
    Lease& lease = *pilots_.lease(task);
    if (lease.proven || !lease.started || is_unproven(lease, now)) continue;
    lease.proven = true;
    pilot.nothing_fits.reset();
  }
}

/// Whether it still has a suspect on trial.
void Engine::watch_trial(PilotState& pilot, Time now) {
  if (pilot.suspects == 0 && !pilot.on_trial) return;
  const bool on_trial =
      pilot.suspects != 0 &&
      std::any_of(pilot.leases.begin(), pilot.leases.end(), [&](const TaskId task) {
        const Lease& lease = *pilots_.lease(task);
        return lease.suspect && (!lease.started || now - *lease.started < kTrial);
      });
  if (std::exchange(pilot.on_trial, on_trial) && !on_trial) pilot.nothing_fits.reset();
}

/// Which pilots still have a suspect on trial, and which tasks still keep away from something.
void Engine::watch_apart(Time now) {
  ReadyQueue& queue = tasks_.queue();
  if (queue.waiting_apart().empty() && pilots_.suspects() == 0 && !any_on_trial_) return;
  const bool decides = some_wait_to_decide(queue);
  any_on_trial_ = false;
  for (auto& [id, pilot] : pilots_.all()) {
    if (decides) note_proven(pilot, now);
    watch_trial(pilot, now);
    any_on_trial_ = any_on_trial_ || pilot.on_trial;
  }
  for (const ClassId id : queue.waiting_apart()) {
    ResourceClass& its_class = queue.get(id);
    if (!its_class.away_since) its_class.away_since = now;
    const Duration waits = now - *its_class.away_since;
    const NodeName& not_at = its_class.apart.not_at;
    bool keeps_away = its_class.apart.suspect && waits < kSparesDear;
    if (!not_at.empty()) {
      keeps_away = (waits < kKeptAway && has_another_pilot(its_class.needs, not_at, now)) ||
                   (trust_.is_braked(not_at) && waits < kKeptAwayInDoubt &&
                    may_have_another_node(its_class.needs, not_at, now));
    }
    if (std::exchange(its_class.keeps_away, keeps_away) && !keeps_away) queue.note_news();
  }
}

}  // namespace hpcbatch

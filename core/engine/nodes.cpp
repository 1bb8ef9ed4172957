// Nodes at which tasks fail, and tasks whose pilots died without a reason.
#include "engine/engine.hpp"
#include "engine/sites/site_forecast.hpp"
#include "model/check.hpp"

#include <algorithm>
#include <utility>

namespace hpcbatch {

// Nodes at which tasks fail: how each end counts, who is tried elsewhere, and what pilots at a node
// that is in doubt or bad are still given.

namespace {

using namespace std::chrono_literals;

// What fails within this, or within a part of what others of its kind take, fails at once.
constexpr Duration kAtOnce = 5s;
constexpr int kPartOfTheOthers = 4;
// As a shell ends for what it could not start (POSIX, Exit Status for Commands).
constexpr int kNotExecutable = 126;
constexpr int kNotFound = 127;

/// Failures that a node can be the cause of.
bool can_be_the_nodes(Failure failure) {
  switch (failure) {
    case Failure::ToolFailed:
    case Failure::ToolSignal:
    case Failure::DiskTask:
    case Failure::InputMissing:
    case Failure::OutputMissing:
    case Failure::OutputInvalid:
    case Failure::StageInFailed:
    case Failure::StageOutFailed:
    case Failure::ContainerMissing:
    case Failure::ContainerFailed:
      return true;
    default:
      return false;
  }
}

bool could_not_start(const Outcome& outcome) {
  return outcome.failure == Failure::ContainerMissing || outcome.exit_code == kNotFound ||
         outcome.exit_code == kNotExecutable;
}

bool ended_at_once(const Outcome& outcome, const ResourceClass& its_class) {
  if (!outcome.started) return true;
  const Duration run = outcome.ended - *outcome.started;
  return run < std::max(kAtOnce, its_class.mean_run.value_or(Duration{}) / kPartOfTheOthers);
}

}  // namespace

TaskKind Engine::kind_of(TaskId task) const {
  const ArrayState& array = *tasks_.find(task.array);
  if (array.tasks.all().size() > 1) return task.array.value;
  constexpr TaskKind kSingle = TaskKind{1} << 63;
  return kSingle | (static_cast<TaskKind>(array.client) << 32) |
         static_cast<TaskKind>(array.terms->in_class);
}

bool Engine::has_another_pilot(const Needs& needs, const NodeName& than, Time now) const {
  return std::any_of(pilots_.all().begin(), pilots_.all().end(), [&](const auto& entry) {
    const PilotState& pilot = entry.second;
    return pilot.connected && !pilot.leaving && !pilot.ending && !pilot.braked &&
           pilot.workspace_trouble.empty() && !pilot.is_at(than) &&
           PilotTable::has_room(needs, pilot, pilot.capacity, now);
  });
}

/// One that is on its way or may be asked for may come to another node.  What has no end is no
/// batch system's, and comes to this one.
bool Engine::may_have_another_node(const Needs& needs, const NodeName& than, Time now) const {
  if (has_another_pilot(needs, than, now)) return true;
  const auto could = [&](const std::string& site, const Shape& shape) {
    return may_run_at(needs, site) && could_run(needs, shape) &&
           (shape.walltime != Duration{} || site != than.site);
  };
  const SiteForecast forecast(sites_, now);
  for (const auto& [id, entry] : sites_.allocations()) {
    const Shape* shape = sites_.shape_of(id);
    if (!shape || entry.facts.pilots_seen != 0 || entry.facts.state == AllocationState::Ended)
      continue;
    if (forecast.is_on_its_way(entry) && could(entry.facts.site, *shape)) return true;
  }
  const std::vector<provision::SiteLimits> limits = forecast.limits();
  for (const provision::Outlet& outlet : forecast.outlets()) {
    const auto site = std::find_if(limits.begin(), limits.end(),
                                   [&](const auto& limit) { return limit.site == outlet.site; });
    if (outlet.open && site->queued < site->max_queued &&
        site->queued + site->running < site->max_running && could(outlet.site, outlet.shape))
      return true;
  }
  return false;
}

/// What an end says of its node, and where the task is to be tried again.
void Engine::weigh_node(const Lease& lease, Outcome& outcome, Ending& ending, Time now) {
  const PilotState& pilot = *lease.held_by;
  const TaskId task = lease.attempt.task;
  const bool is_well = ending.failure == Failure::Ok;
  if (pilot.node.empty() || (!is_well && !can_be_the_nodes(ending.failure))) return;
  const TaskKind kind = kind_of(task);
  const TaskHistory* past = tasks_.history(task);
  if (is_well) {
    if (!trust_.knows(kind)) return;
    if (past && past->doubted && !pilot.is_at(past->failed_at))
      trust_.well_elsewhere(past->failed_at, kind, now);
    trust_.well(pilot.at(), kind, now);
    return;
  }
  if (past && past->doubted && !pilot.is_at(past->failed_at))
    trust_.failed_elsewhere(past->failed_at, kind);
  const ArrayState& array = *tasks_.find(task.array);
  const Needs& needs = array.terms->needs;
  const NodeName here = pilot.at();
  // The same task again is no more evidence than it was.
  const bool again = past && past->failed_at == here;
  ending.doubted =
      trust_.failed(here, kind,
                    {.quick = !again && ended_at_once(outcome, tasks_.queue().get(lease.in_class)),
                     .never_ran = could_not_start(outcome),
                     .why = outcome.message,
                     .can_go_elsewhere = [&] { return may_have_another_node(needs, here, now); }},
                    now);
  ending.failed_at = here;
  if (ending.doubted) {
    outcome.message += "; node " + pilot.node + " is in doubt, another is to try it";
    ending.keeps_away = true;
  } else if ((array.terms->retries != 0 || is_not_the_tasks_fault(ending.failure)) &&
             has_another_pilot(needs, here, now)) {
    ending.keeps_away = true;
  }
}

void Engine::recall_backlog(PilotState& pilot, Time now) {
  if (pilot.backlog.empty() || !pilot.connected) return;
  pilot.recalled = true;
  pilot.recalled_at = now;
  actions_.push_back(RecallLeases{pilot.id, static_cast<std::uint32_t>(pilot.backlog.size())});
}

/// What runs there may end; then it goes.
void Engine::retire(PilotState& pilot) {
  pilot.leaving = true;
  pilot.leaving_reason = "its node " + pilot.node + " is avoided: " + trust_.why(pilot.at());
  end_if_empty(pilot);
  work_changed_ = true;
}

/// Who rests, because its node is in doubt or bad.
void Engine::watch_nodes(Time now) {
  if (trust_.any() || any_braked_) {
    any_braked_ = false;
    for (auto& [id, pilot] : pilots_.all()) {
      const NodeName at = pilot.at();
      const bool was_braked = std::exchange(pilot.braked, trust_.is_braked(at));
      any_braked_ = any_braked_ || pilot.braked;
      pilot.rests = pilot.braked && (!pilot.is_empty() || trust_.next_try(at) > now);
      if (pilot.braked && !was_braked) recall_backlog(pilot, now);
    }
    for (auto& [id, pilot] : pilots_.all()) {
      if (!pilot.braked || !pilot.connected || !trust_.is_bad(pilot.at())) continue;
      if (!pilot.came_to_bad && !pilot.leaving) retire(pilot);
      // It gets something where nobody else of its kind is there or comes.
      pilot.rests = pilot.rests || has_another_of_its_kind(pilot, now);
    }
  }
  watch_apart(now);
}

std::vector<std::string> Engine::avoided_nodes(const std::string& site) const {
  std::vector<std::string> nodes;
  for (const auto& [name, node] : trust_.nodes()) {
    if (name.site == site) nodes.push_back(name.node);
  }
  return nodes;
}

bool Engine::has_another_of_its_kind(const PilotState& pilot, Time now) const {
  const auto is_like_it = [&](const PilotState& other) {
    return other.connected && !other.leaving && !other.ending && !other.braked &&
           other.workspace_trouble.empty() && other.site == pilot.site &&
           other.shape == pilot.shape;
  };
  for (const auto& [id, other] : pilots_.all()) {
    if (is_like_it(other)) return true;
  }
  const SiteForecast forecast(sites_, now);
  for (const auto& [id, entry] : sites_.allocations()) {
    const Allocation& facts = entry.facts;
    if (facts.site == pilot.site && facts.shape == pilot.shape && facts.pilots_seen == 0 &&
        facts.state != AllocationState::Ended && forecast.is_on_its_way(entry))
      return true;
  }
  return false;
}

// Tasks whose pilots died without a reason: they are tried one to a pilot, beside nothing dear, so
// that the next death names one of them and the others clear themselves.

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

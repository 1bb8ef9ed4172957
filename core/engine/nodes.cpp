// Nodes at which tasks fail: how each end counts, who is tried elsewhere, and what pilots at a node
// that is in doubt or bad are still given.
#include "engine/engine.hpp"
#include "engine/sites/site_forecast.hpp"

#include "model/check.hpp"

#include <algorithm>
#include <utility>

namespace hpcbatch {
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
      pilot.rests = pilot.braked && (!pilot.leases.empty() || trust_.next_try(at) > now);
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

}  // namespace hpcbatch

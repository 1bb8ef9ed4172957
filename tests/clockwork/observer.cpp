#include "observer.hpp"

#include "model/check.hpp"
#include "names.hpp"
#include "world.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>

namespace hpcbatch::clockwork {
namespace {

constexpr std::uint32_t kNodesInDoubt = 3;

// A task that is leased so often moves in a circle.
constexpr std::uint32_t kTooOften = 300;

TaskId task_of(const pilot::AttemptId& id) {
  return {ArrayId{id.array}, id.index};
}

}  // namespace

// --- the engine --------------------------------------------------------------------------------

void Observer::engine_started(const Saved& saved) {
  own_failures_.clear();
  of_the_node_.clear();
  for (const SaveFailedAttempt& failed : saved.failed_attempts()) {
    if (is_not_the_tasks_fault(failed.outcome.failure)) continue;
    ++(failed.charged ? own_failures_ : of_the_node_)[failed.attempt.task];
  }
  allocations_.clear();
  for (const auto& [id, facts] : saved.allocations()) allocations_[id] = facts.state;
}

void Observer::event(const Event& event) {
  world_.count(kEvents.at(event.index()));
}

void Observer::lease_lost(const AttemptId& attempt) {
  lost_.insert(attempt.epoch);
  const auto well = ended_well_.find(attempt.task);
  if (well != ended_well_.end() && well->second.epoch == attempt.epoch) ended_well_.erase(well);
}

void Observer::action(const Action& action) {
  world_.count(kActions.at(action.index()));
  match(
      action, [&](const SaveLeases& a) { leased(a); },
      [&](const SaveArrays& a) {
        for (std::size_t i = 0; i < a.arrays.size(); ++i)
          retries_[a.id_of(i)] = a.arrays[i].retries;
      },
      [&](const SaveAllocation& a) { allocation(a.allocation); },
      [&](const SaveFailedAttempt& a) {
        const TaskId task = a.attempt.task;
        check_end(a.attempt, a.pilot, a.outcome);
        world_.count("attempt failed " + std::string(to_string(a.outcome.failure)));
        if (is_not_the_tasks_fault(a.outcome.failure)) return;
        // Its node is in doubt: a few nodes may be.
        if (!a.charged && ++of_the_node_[task] <= kNodesInDoubt) return;
        // Where too many others had failed, its array is over by now.
        const std::uint32_t retries = retries_.at(task.array);
        if (++own_failures_[task] > retries) {
          world_.fail(fmt::format("{} is tried again after it failed {} times, with {} retries",
                                  to_string(task), own_failures_[task], retries));
        }
      },
      [&](const SaveResult& a) {
        check_end(a.attempt, a.pilot, a.outcome);
        world_.count("task ended " + std::string(to_string(a.outcome.failure)));
        ever_ended_.insert(a.attempt.task);
        if (a.outcome.failure != Failure::Ok) over_.insert(a.attempt.epoch);
      },
      [&](const SaveResults& a) {
        world_.count("task never ran " + std::string(to_string(a.outcome.failure)));
        for (const IndexRange& range : a.indices.ranges()) {
          for (std::uint64_t i = range.first; i <= range.last; ++i)
            ever_ended_.insert({a.array, static_cast<std::uint32_t>(i)});
        }
      },
      [&](const SaveRevived& a) {
        for (const IndexRange& range : a.indices.ranges()) {
          for (std::uint64_t i = range.first; i <= range.last; ++i) {
            const TaskId task{a.array, static_cast<std::uint32_t>(i)};
            ended_well_.erase(task);
            held_.erase(task);
            cancelled_.erase(task);
            own_failures_.erase(task);
            of_the_node_.erase(task);
            for (auto* asked : {&to_hold_, &to_cancel_}) {
              for (auto& [request, tasks] : *asked) tasks.erase(task);
            }
          }
        }
      },
      [](const auto&) {});
}

/// Nothing is cut by the end of a pilot that has none.
void Observer::check_end(const AttemptId& attempt, const PilotId& pilot, const Outcome& outcome) {
  if (outcome.failure != Failure::PilotWalltime || !world_.batch.has_no_end(pilot.allocation))
    return;
  world_.fail(fmt::format("{} is told that the time of {}, which has no end, was used up",
                          to_string(attempt.task), to_string(pilot)));
}

void Observer::leased(const SaveLeases& save) {
  for (const AttemptId& attempt : save.attempts) {
    const TaskId task = attempt.task;
    if (held_.contains(task))
      world_.fail(fmt::format("{} is leased though its user holds it", to_string(task)));
    if (cancelled_.contains(task))
      world_.fail(fmt::format("{} is leased though its user cancelled it", to_string(task)));
    if (++leases_[task] > kTooOften)
      world_.fail(fmt::format("{} was leased {} times", to_string(task), leases_[task]));
  }
}

void Observer::allocation(const Allocation& facts) {
  const auto before = allocations_.find(facts.id);
  if (before == allocations_.end()) {
    world_.count("allocation new");
  } else if (before->second != facts.state) {
    world_.count(
        fmt::format("allocation {} > {}", to_string(before->second), to_string(facts.state)));
  }
  allocations_[facts.id] = facts.state;
}

// --- pilots ------------------------------------------------------------------------------------

void Observer::pilot_action(const pilot::Action& action) {
  world_.count(kPilotActions.at(action.index()));
  if (const auto* leaving = std::get_if<pilot::SayLeaving>(&action))
    world_.count("pilot leaves " + leaving->reason);
  if (const auto* stop = std::get_if<pilot::Stop>(&action))
    world_.count(stop->by_force ? "pilot stops by force" : "pilot stops");
}

void Observer::attempt_started(const PilotProcess& process, const pilot::AttemptId& id,
                               const Resources& capacity) {
  const TaskId task = task_of(id);
  const bool is_lost = lost_.contains(id.epoch);
  if (!is_lost) check_alone(process, task);
  check_dependencies(task);
  check_runs_once(task);
  if (const auto well = ended_well_.find(task); well != ended_well_.end() && !is_lost) {
    world_.fail(fmt::format("{} starts again on {} though it ended well on {}", to_string(task),
                            process.name(), well->second.process));
  }
  const Resources needs = world_.users.needs_of(task);
  running_[task][id.epoch] = {process.name(), process.id().allocation, needs};
  use(process, needs, capacity);
}

void Observer::claim_started(const PilotProcess& process, const pilot::AttemptId& id,
                             const Resources& capacity) {
  use(process, world_.users.needs_of(task_of(id)), capacity);
}

void Observer::claim_ended(const PilotProcess& process, const pilot::AttemptId& id) {
  used_[process.name()].subtract(world_.users.needs_of(task_of(id)));
}

void Observer::use(const PilotProcess& process, const Resources& needs, const Resources& capacity) {
  Resources& used = used_[process.name()];
  used.add(needs);
  if (capacity.get(kCpus) < used.get(kCpus) || capacity.gpus() < used.gpus()) {
    world_.fail(fmt::format("{} has {} and runs tasks that need {}", process.name(), show(capacity),
                            show(used)));
  }
}

/// Two attempts of one task never run at the same time: the batch systems of this world end what
/// they say has ended.  Only what a site that was taken out of the configuration still runs nobody
/// knows.
void Observer::check_alone(const PilotProcess& process, TaskId task) {
  for (const auto& [epoch, run] : running_[task]) {
    if (out_of_reach_.contains(run.allocation) || lost_.contains(epoch)) continue;
    world_.fail(fmt::format("{} starts on {} while it runs on {}", to_string(task), process.name(),
                            run.process));
  }
}

void Observer::check_dependencies(TaskId task) {
  const NewArray* array = world_.users.facts_of(task.array);
  if (!array) return world_.fail(to_string(task) + " was never submitted");
  std::optional<std::string> unmet;
  for (const Dependency& on : array->after) {
    const auto missing = missing_of(task, on);
    if (!missing && array->course->any_of_after) return;
    if (missing) unmet = missing;
  }
  if (unmet) world_.fail(*unmet);
}

/// What of it has not come about.
std::optional<std::string> Observer::missing_of(TaskId task, const Dependency& on) const {
  const auto good = [&](TaskId before) { return ever_ok_.contains(before); };
  const auto over = [&](TaskId before) { return good(before) || ever_ended_.contains(before); };
  const auto is_met = [&](TaskId before) {
    switch (on.kind) {
      case Dependency::Kind::Start:
        return over(before) || ever_started_.contains(before);
      case Dependency::Kind::AnyEnd:
      case Dependency::Kind::NotSuccess:
        return over(before);
      default:
        return good(before);
    }
  };
  const NewArray* there = world_.users.facts_of(on.array);
  IndexSet wanted = there->indices;
  if (on.index) wanted = IndexRange{*on.index, *on.index};
  if (on.kind == Dependency::Kind::EachSuccess) wanted = IndexRange{task.index, task.index};
  for (const IndexRange& range : wanted.ranges()) {
    for (std::uint64_t i = range.first; i <= range.last; ++i) {
      const TaskId before{on.array, static_cast<std::uint32_t>(i)};
      if (is_met(before)) continue;
      return fmt::format("{} starts before {}, for which it waits, is where it should be",
                         to_string(task), to_string(before));
    }
  }
  return std::nullopt;
}

/// But for retries of its user's, by hand or counted.
void Observer::check_runs_once(TaskId task) {
  const bool again = !ever_started_.insert(task).second;
  const NewArray* array = world_.users.facts_of(task.array);
  if (!array || !array->course->no_requeue || array->retries != 0) return;
  if (again && !retried_.contains(task.array))
    world_.fail(to_string(task) + " starts a second time, and was to start once");
}

void Observer::attempt_ended(const PilotProcess& process, const pilot::AttemptId& id,
                             const std::string& failure, bool staged) {
  const TaskId task = task_of(id);
  const auto run = running_[task].find(id.epoch);
  if (run == running_[task].end()) return world_.fail(to_string(task) + " ends and never started");
  used_[process.name()].subtract(run->second.needs);
  running_[task].erase(run);
  if (staged) return;
  not_in_outbox_[process.name()].insert(task);
  ever_ended_.insert(task);
  if (failure == "ok") ended_well(process, id);
}

void Observer::published(const PilotProcess& process, const pilot::AttemptId& id) {
  not_in_outbox_[process.name()].insert(task_of(id));
  ended_well(process, id);
}

void Observer::ended_well(const PilotProcess& process, const pilot::AttemptId& id) {
  const TaskId task = task_of(id);
  ever_ended_.insert(task);
  ever_ok_.insert(task);
  if (!lost_.contains(id.epoch) && !over_.contains(id.epoch))
    ended_well_[task] = {process.name(), id.epoch};
}

void Observer::outbox_written(const PilotProcess& process) {
  not_in_outbox_.erase(process.name());
}

/// What it had ended and not told is lost, and nobody is to blame.
void Observer::fenced(const PilotProcess& process) {
  std::erase_if(ended_well_,
                [&](const auto& entry) { return entry.second.process == process.name(); });
}

void Observer::gone(const PilotProcess& process) {
  for (auto& [task, runs] : running_)
    std::erase_if(runs, [&](const auto& run) { return run.second.process == process.name(); });
  used_.erase(process.name());
}

void Observer::killed(const PilotProcess& process) {
  for (const TaskId task : not_in_outbox_[process.name()]) ended_well_.erase(task);
  not_in_outbox_.erase(process.name());
  gone(process);
}

void Observer::exited(const PilotProcess& process) {
  if (world_.clock.now() < world_.workspace.unwritable_until) {
    for (const TaskId task : not_in_outbox_[process.name()]) ended_well_.erase(task);
  }
  not_in_outbox_.erase(process.name());
  for (const auto& [task, runs] : running_) {
    for (const auto& [epoch, run] : runs) {
      if (run.process == process.name())
        world_.fail(fmt::format("{} ends while {} runs", process.name(), to_string(task)));
    }
  }
  gone(process);
}

// --- users -------------------------------------------------------------------------------------

/// Those of the selection that have not ended and that no pilot has.
std::set<TaskId> Observer::unleased(const Selection& tasks, const Engine& engine) const {
  std::set<TaskId> found;
  const ArrayState* array = engine.tasks().find(tasks.array);
  if (!array) return found;
  IndexSet wanted = tasks.indices.value_or(array->tasks.all()).intersection(array->tasks.all());
  wanted.remove(array->tasks.ok());
  wanted.remove(array->tasks.not_ok());
  for (const IndexRange& range : wanted.ranges()) {
    for (std::uint64_t i = range.first; i <= range.last; ++i) {
      const TaskId task{tasks.array, static_cast<std::uint32_t>(i)};
      if (!engine.pilots().lease(task)) found.insert(task);
    }
  }
  return found;
}

void Observer::hold_asked(RequestId request, const Selection& tasks, const Engine& engine) {
  to_hold_[request.value] = unleased(tasks, engine);
}

void Observer::release_asked(const Selection& tasks) {
  const auto is_of_it = [&](TaskId task) { return task.array == tasks.array; };
  std::erase_if(held_, is_of_it);
  for (auto& [request, asked] : to_hold_) std::erase_if(asked, is_of_it);
}

void Observer::cancel_asked(RequestId request, const Selection& tasks, const Engine& engine) {
  std::set<TaskId> all = unleased(tasks, engine);
  if (const ArrayState* array = engine.tasks().find(tasks.array)) {
    const IndexSet leased =
        tasks.indices ? array->tasks.leased().intersection(*tasks.indices) : array->tasks.leased();
    for (const IndexRange& range : leased.ranges()) {
      for (std::uint64_t i = range.first; i <= range.last; ++i)
        all.insert({tasks.array, static_cast<std::uint32_t>(i)});
    }
  }
  to_cancel_[request.value] = std::move(all);
}

void Observer::answered(RequestId request) {
  if (const auto at = to_hold_.find(request.value); at != to_hold_.end()) {
    held_.insert(at->second.begin(), at->second.end());
    to_hold_.erase(at);
  }
  if (const auto at = to_cancel_.find(request.value); at != to_cancel_.end()) {
    cancelled_.insert(at->second.begin(), at->second.end());
    to_cancel_.erase(at);
  }
}

void Observer::nobody_answers() {
  to_hold_.clear();
  to_cancel_.clear();
}

}  // namespace hpcbatch::clockwork

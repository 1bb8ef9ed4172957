// What pilots say: they register, start, end and give back attempts, fall silent, leave.
#include "engine/engine.hpp"
#include "model/quantities.hpp"
#include "model/site.hpp"
#include "planted/planted.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <set>
#include <utility>

namespace hpcbatch {

void Engine::restore_pilots(const Snapshot& snapshot, Time now) {
  for (const StoredLease& stored : snapshot.leases) {
    if (HPCBATCH_PLANTED(leases_forgotten_by_restart)) break;
    const ArrayState* array = tasks_.find(stored.attempt.task.array);
    if (!array || !array->tasks.leased().contains(stored.attempt.task.index)) continue;
    PilotState& pilot = pilots_.add(stored.pilot);
    const AllocationEntry* entry = sites_.find(stored.pilot.allocation);
    if (entry) pilot.site = entry->facts.site;
    pilot.silent_since = now;
    pilots_.grant({.attempt = stored.attempt,
                   .pilot = stored.pilot,
                   .in_class = tasks_.class_of_task(stored.attempt.task),
                   .granted = array->terms->needs.amounts,
                   .guessed = true,
                   .cancelled = stored.cancelled && !HPCBATCH_PLANTED(cancel_forgotten_by_restart),
                   .suspect = is_suspect(stored.attempt.task),
                   // until its pilot says that it has not started
                   .state = stored.permitted ? Lease::State::Publishing : Lease::State::Running,
                   .since = now});
    for (const std::uint32_t rank : stored.members) {
      PilotState& member = pilots_.add({stored.pilot.allocation, rank});
      member.site = pilot.site;
      member.silent_since = now;
      pilots_.claim(*pilots_.lease(stored.attempt.task), member, array->terms->needs.amounts);
    }
  }
  // Leases whose allocation is gone without a trace cannot be asked for any more.
  std::vector<AllocationId> gone;
  for (const auto& [id, pilot] : pilots_.all()) {
    if (!sites_.find(id.allocation)) gone.push_back(id.allocation);
  }
  for (const AllocationId& id : gone) {
    lose_leases({id, Failure::PilotKilled, false,
                 fmt::format("allocation {} ended while the engine was away", id.name)},
                now);
    std::erase_if(pilots_.all(), [&](const auto& entry) { return entry.first.allocation == id; });
  }
}

void Engine::handle(const PilotRegistered& event, Time now) {
  PilotState* known = pilots_.find(event.pilot);
  if (known && known->connected && known->incarnation != event.incarnation) {
    // Two processes of one name: the first keeps it.
    actions_.push_back(FencePilot{event.pilot, event.incarnation});
    return;
  }
  const AllocationEntry* before = sites_.find(event.pilot.allocation);
  const bool first = before && before->facts.pilots_seen <= event.pilot.rank;
  const bool is_fenced = before && before->facts.fenced.contains(event.pilot.rank);
  if (is_fenced || over_.contains(event.pilot.allocation) || !sites_.pilot_registered(event, now)) {
    actions_.push_back(FencePilot{event.pilot, event.incarnation});
    return;
  }
  const AllocationEntry* allocation = sites_.find(event.pilot.allocation);
  PilotState& pilot = known ? *known : pilots_.add(event.pilot);
  const bool was_known = pilot.registered;  // else an engine before this one may have known another
  const bool same_process = pilot.incarnation == event.incarnation || !was_known;
  pilot.site = allocation->facts.site;
  pilot.shape = allocation->facts.shape;
  // Whoever pays for it does so also when the configuration has changed.
  pilot.made_for = choices_in_name(pilot.shape);
  if (const Shape* shape = sites_.shape_of(event.pilot.allocation)) pilot.tags = shape->tags;
  pilot.warm.clear();
  pilot.starting.clear();
  pilot.workspace_trouble.clear();
  sites_.workspace_seen(event.pilot, "", now);
  pilot.node = event.node;
  pilot.incarnation = event.incarnation;
  pilot.capacity = event.capacity;
  pilot.gpus = event.gpus;
  pilot.end = event.time_left ? std::optional(now + *event.time_left) : std::nullopt;
  pilot.connected = true;
  pilot.registered = true;
  pilot.registered_at = now;
  // What a pilot of a site that is not there any more writes, nobody could read.
  const bool is_of_no_site = !sites_.site(pilot.site);
  pilot.leaving =
      event.leaving || !event.refusals.empty() || allocation->facts.cancel_asked || is_of_no_site;
  pilot.round_trip = Duration{};  // it may have come another way
  pilot.recalled = false;
  pilot.ending = false;
  pilot.owed_an_answer = false;
  pilot.stays_until.reset();
  pilot.came_to_bad = trust_.is_bad(pilot.at());
  actions_.push_back(WelcomePilot{event.pilot, event.incarnation});
  reconcile(pilot, event, same_process, was_known, now);
  // Behind what that has saved.
  actions_.push_back(ConfirmPilot{event.pilot, event.incarnation, engine_start_});
  if (!event.refusals.empty()) {
    pilot.leaving_reason = fmt::format("{}", fmt::join(event.refusals, "; "));
    sites_.of_no_use(
        event.pilot.allocation,
        fmt::format("a pilot found its node unfit: {}: {}", event.node, pilot.leaving_reason), now);
  } else if (first) {
    newcomer_ = event.pilot;
  }
  weighed_ = {};
  end_if_empty(pilot);
  work_changed_ = true;
}

void Engine::handle(const GpusSeen& event, Time) {
  PilotState* pilot = pilots_.find(event.pilot);
  if (!pilot || !pilot->connected) return;
  pilot->gpus = event.gpus;
  pilot->capacity = event.capacity;
  pilots_.recount(*pilot);
  weighed_ = {};
  work_changed_ = true;
}

/// A pilot that comes with less than its shape promises may fit nothing of the work for which it
/// was asked: the next of its kind would do no better.
void Engine::judge_newcomer(Time now) {
  const auto id = std::exchange(newcomer_, std::nullopt);
  const PilotState* pilot = id ? pilots_.find(*id) : nullptr;
  const Shape* shape = id ? sites_.shape_of(id->allocation) : nullptr;
  if (!pilot || !shape || !pilot->takes_tasks() || !pilot->leases.empty()) return;
  const ReadyQueue& queue = tasks_.queue();
  for (const ClassId in_class : queue.waiting()) {
    const ResourceClass& waiting = queue.get(in_class);
    if (!may_run_at(waiting.needs, pilot->site) || !could_run(waiting.needs, *shape)) continue;
    // It could run it, but is not to yet (filling.cpp, "left to warm").
    if (PilotTable::has_room(waiting, *pilot, pilot->free, now)) return;
    sites_.of_no_use(id->allocation,
                     fmt::format("pilot {} on {} found nothing that it could run: it has {}{}",
                                 to_string(*id), pilot->node, hpcbatch::show(pilot->capacity),
                                 pilot->end ? " for " + show_duration(*pilot->end - now) : ""),
                     now);
    return;
  }
}

/// Whether an engine before this one has leased it to this very process.
static bool was_given(const PilotRegistered& process, const Lease& lease) {
  if (HPCBATCH_PLANTED(other_process_taken_for_it)) return true;
  return process.confirmed_by != 0 && process.confirmed_by <= lease.attempt.engine_start();
}

static Outcome lost_at(const PilotId& pilot, bool same_process, Time now) {
  Outcome outcome;
  outcome.failure = Failure::NodeLost;
  outcome.message =
      same_process ? fmt::format("the engine was started anew, and pilot {} no longer has it",
                                 to_string(pilot))
                   : fmt::format("pilot {} was started anew by the batch system", to_string(pilot));
  outcome.ended = now;
  return outcome;
}

/// Compares what the pilot says it holds with what was leased to it.
// NOLINTNEXTLINE(readability-function-cognitive-complexity)
void Engine::reconcile(PilotState& pilot, const PilotRegistered& event, bool same_process,
                       bool was_known, Time now) {
  std::set<TaskId> held;
  for (const HeldAttempt& there : event.held) {
    if (pilots_.claimed(pilot.id, there.attempt)) continue;
    Lease* lease = pilots_.current(pilot.id, there.attempt);
    if (!lease) {
      // A result follows, and may be one that is known here and not on disk yet: it is acknowledged
      // when it is.
      if (there.state == HeldAttempt::State::Ended)
        pilot.owed_an_answer = true;
      else
        actions_.push_back(KillAttempt{pilot.id, there.attempt, Failure::Cancelled, true});
      continue;
    }
    held.insert(there.attempt.task);
    lease->waits_for_workspace = false;
    if (there.state == HeldAttempt::State::Waiting) {
      lease->state = Lease::State::Sent;
    } else {
      lease->state = Lease::State::Running;
      if (!lease->started) lease->started = now;
      note_started(*lease);
    }
    // What it was told, or was to be told, while nobody heard it.
    if (lease->told == Failure::Ok && tasks_.is_late(there.attempt.task))
      lease->told = Failure::DeadlineMissed;
    const Failure as = lease->cancelled ? Failure::Cancelled : lease->told;
    if (as != Failure::Ok) actions_.push_back(KillAttempt{pilot.id, there.attempt, as, false});
  }
  for (const TaskId task : std::set<TaskId>(pilot.leases)) {
    // Whose outputs are on their way here nobody there needs to hold any more.
    if (held.contains(task) || pilots_.lease(task)->has_left) continue;
    const Lease& lease = *pilots_.lease(task);
    // What a process before had begun nobody has told.
    const bool may_have_begun = runs_once(task)
                                    ? !(was_known ? same_process : was_given(event, lease))
                                    : lease.state != Lease::State::Sent && !same_process;
    if (may_have_begun) {
      const Outcome* own = pilots_.failed(task);
      Outcome outcome = own ? *own : lost_at(pilot.id, same_process, now);
      end_lease(take_lease(task), std::move(outcome), Blame::None, now);
    } else {
      // It never reached the pilot: nothing was started, so nothing is lost.
      return_lease(task, now);
    }
  }
  for (const TaskId task : pilot.leases) {
    Lease& lease = *pilots_.lease(task);
    if (lease.guessed) pilots_.settle(lease, tasks_.find(task.array)->terms->needs, pilot);
  }
  if (!pilot.claims.empty()) reconcile_claims(pilot, event.held, same_process);
  pilots_.recount(pilot);
  if (std::any_of(pilot.backlog.begin(), pilot.backlog.end(),
                  [&](TaskId task) { return pilots_.lease(task)->to_hold; }))
    recall_backlog(pilot, now);
}

void Engine::return_lease(TaskId task, Time now) {
  const Lease lease = take_lease(task);
  pilots_.note_given_back(lease);
  pilots_.forget_given_back(tasks_.totals().at(TaskPartition::Leased),
                            [&](TaskId other) { return state_of(other).has_value(); });
  if (auto* dropped = actions_.empty() ? nullptr : std::get_if<DropLeases>(&actions_.back())) {
    dropped->tasks.push_back(task);
  } else {
    actions_.push_back(DropLeases{{task}});
  }
  tasks_.give_back(task);
  if (lease.to_hold) came_back_held_[task.array].add(task.index);
  if (lease.cancelled) {
    std::uint64_t changed = 0;
    tasks_.cancel({task.array, IndexSet(IndexRange{task.index, task.index})}, kBeforeItStarted, now,
                  changed);
  }
}

void Engine::handle(const PilotDisconnected& event, Time now) {
  PilotState* pilot = pilots_.find(event.pilot);
  if (!pilot || !pilot->connected) return;
  pilot->connected = false;
  weighed_ = {};
  pilot->silent_since = now;
  pilot->recalled = false;
  sites_.pilot_gone(event.pilot, now);
  if (HPCBATCH_PLANTED(silence_leases_again)) {
    const std::set<TaskId> leases = pilot->leases;
    for (const TaskId task : leases) return_lease(task, now);
  }
}

std::set<AllocationId> Engine::allocations_with_pilots() const {
  std::set<AllocationId> alive;
  for (const auto& [id, pilot] : pilots_.all()) {
    if (pilot.connected) alive.insert(id.allocation);
  }
  return alive;
}

void Engine::watch_silence(Time now) {
  for (const AllocationOver& over : sites_.out_of_reach(allocations_with_pilots(), now))
    allocation_over(over, now);
  for (auto& [id, pilot] : pilots_.all()) {
    if (pilot.connected || pilot.cancel_asked || pilot.is_empty()) continue;
    const SiteState* site = sites_.site(pilot.site);
    const AllocationEntry* entry = sites_.find(id.allocation);
    // Suspended, no pilot can speak; it needs its time from when it was let go on.
    if (!site || !entry || entry->seen == BatchState::Suspended) continue;
    if (now - std::max(pilot.silent_since, entry->resumed_at) < site->site.lost_after) continue;
    pilot.cancel_asked = true;
    cancel_allocation(id.allocation, "a pilot of it was silent for too long", now);
  }
  for (const auto& [id, entry] : sites_.allocations()) {
    const Allocation& facts = entry.facts;
    if (facts.state != AllocationState::Running || facts.pilots_seen != 0 || facts.cancel_asked)
      continue;
    if (entry.seen == BatchState::Suspended) continue;
    const SiteState* site = sites_.site(facts.site);
    const Time since =
        std::max({started_at_, facts.running_since.value_or(started_at_), entry.resumed_at});
    if (!site || now - since < site->site.lost_after) continue;
    sites_.of_no_use(
        id,
        fmt::format(
            "the pilot of {} (batch job {}) never registered; its output lies in the workspace",
            id.name, facts.number),
        now);
    cancel_allocation(id, "its pilot never registered", now);
  }
}

/// What is about to be killed gets no more tasks.
void Engine::cancel_allocation(const AllocationId& id, const std::string& why, Time now) {
  sites_.cancel(id, now);
  for (auto& [pilot_id, pilot] : pilots_.all()) {
    if (pilot_id.allocation != id) continue;
    pilot.leaving = true;
    pilot.leaving_reason = why;
  }
  work_changed_ = true;
}

void Engine::handle(const AttemptsStarted& event, Time now) {
  for (const AttemptId& attempt : event.attempts) {
    Lease* lease = pilots_.current(event.pilot, attempt);
    if (!lease) continue;
    pilots_.started(*lease, now);
    note_started(*lease);
  }
}

void Engine::handle(const AttemptsEnded& event, Time now) {
  AcknowledgeResults known{event.pilot, {}};
  for (const AttemptEnd& end : event.ends) {
    if (attempt_ended(event.pilot, end, now)) known.attempts.push_back(end.attempt);
  }
  tasks_.tell_ended();
  forget_if_over(event.pilot.allocation);
  if (known.attempts.empty()) return;
  actions_.push_back(std::move(known));
  if (PilotState* pilot = pilots_.find(event.pilot)) end_if_empty(*pilot);
}

bool Engine::attempt_ended(const PilotId& pilot, const AttemptEnd& end, Time now) {
  Lease* lease = pilots_.current(pilot, end.attempt);
  if (!lease) {
    if (end.of_room) return member_ended(pilot, end);
    // A stale attempt: its result is refused, and its pilot need not keep it.
    if (PilotState* its_pilot = pilots_.find(pilot)) its_pilot->owed_an_answer = false;
    return pilots_.current(end.attempt) == nullptr;
  }
  if (end.outputs_staged) {
    if (lease->cancelled) {
      actions_.push_back(KillAttempt{pilot, end.attempt, Failure::Cancelled, false});
    } else {
      lease->state = Lease::State::Publishing;
      if (end.outcome.failure != Failure::Ok) pilots_.failed(*lease, end.outcome);
      actions_.push_back(SavePermitted{end.attempt.task});
      actions_.push_back(PermitPublish{pilot, end.attempt});
    }
    return false;
  }
  Outcome outcome = end.outcome;
  if (lease->told != Failure::Ok && !lease->cancelled && outcome.failure == Failure::Cancelled)
    outcome.failure = lease->told;
  if (asks_to_go_on(end.attempt.task, outcome)) outcome.failure = Failure::Requeued;
  if (outcome.failure == Failure::DeadlineMissed && outcome.message.empty())
    outcome.message = "its deadline has come";
  if (lease->cancelled && outcome.failure != Failure::Ok) {
    outcome.failure = Failure::Cancelled;
    if (outcome.message.empty()) outcome.message = why_cancelled(end.attempt.task);
  }
  if (tasks_.find(end.attempt.task.array)->terms->needs.nodes > 1)
    blame_lost_member(*lease, outcome);
  if (!lease->cancelled || !HPCBATCH_PLANTED(lease_kept_on_cancel))
    end_lease(take_lease(end.attempt.task), std::move(outcome), Blame::None, now);
  return true;
}

namespace {

/// A run that a pilot's end cut was to be longer: it tells only where it is longer than the others
/// were.
void learn_run(ResourceClass& its_class, const Outcome& outcome) {
  if (!outcome.started || outcome.ended <= *outcome.started) return;
  const Duration run = outcome.ended - *outcome.started;
  const bool whole = outcome.failure == Failure::Ok || outcome.failure == Failure::ToolFailed;
  const bool cut =
      outcome.failure == Failure::PilotWalltime && run > its_class.mean_run.value_or(Duration{});
  if (!whole && !cut) return;
  its_class.mean_run = its_class.mean_run ? (*its_class.mean_run * 7 + run) / 8 : run;
  ++its_class.runs;
}

}  // namespace

/// It had what was guessed of memory, or of a GPU, and that was too little for it or for all there.
bool Engine::is_guess_too_small(const Lease& lease, const Outcome& outcome) const {
  if (!may_be_by_guess(outcome.failure)) return false;
  const RareOptional<Guess>& guess = tasks_.find(lease.attempt.task.array)->terms->needs.guess;
  if (!guess || tasks_.guess_failed(lease.attempt.task)) return false;
  if (outcome.failure != Failure::OomTask) return guess->gpus;
  if (!guess->memory) return false;
  // It has used up what was asked for itself.
  const auto asked = static_cast<std::uint64_t>(guess->memory_asked.whole());
  return asked == 0 || outcome.peak_memory < asked;
}

bool Engine::runs_once(TaskId task) const {
  return tasks_.find(task.array)->terms->course->no_requeue;
}

void Engine::end_lease(const Lease& lease, Outcome outcome, Blame blame, Time now) {
  PilotState& pilot = *lease.held_by;
  if (outcome.failure == Failure::Ok && !std::exchange(pilot.did_well, true))
    sites_.did_well(pilot.id.allocation);
  ResourceClass& its_class = tasks_.queue().get(lease.in_class);
  // The node's clock is not ours; only the length of the run is taken from it.
  if (!outcome.started && lease.started) outcome.started = std::min(*lease.started, outcome.ended);
  learn_run(its_class, outcome);
  learn_speed(lease, outcome);
  if (outcome.started) tell_staging(lease, outcome, now);
  Ending ending{.failure = outcome.failure,
                .unexplained = blame != Blame::None,
                .alone = blame == Blame::Alone,
                .doubted = false,
                .failed_at = {},
                .keeps_away = false,
                .guess_failed = is_guess_too_small(lease, outcome),
                .runs_once = runs_once(lease.attempt.task),
                .had = std::nullopt};
  std::optional<Duration> longest;
  if (outcome.failure == Failure::Requeued) ending.had = left_too_little(pilot, outcome, now);
  if (outcome.failure == Failure::PilotWalltime && pilot.end)
    ending.had = *pilot.end - lease.started.value_or(lease.since);
  if (outcome.failure == Failure::PilotWalltime || ending.had) {
    // Its files may be staged in at another site.
    longest = longest_for(tasks_.find(lease.attempt.task.array)->terms->needs);
  }
  if (lease.cancelled && outcome.failure != Failure::Ok) {
    outcome.failure = Failure::Cancelled;
    ending.failure = Failure::Cancelled;
  }
  weigh_node(lease, outcome, ending, now);
  const bool again =
      tasks_.ended(lease.attempt, lease.pilot, pilot.node, std::move(outcome), ending, longest);
  if (again) work_changed_ = true;
  const TaskId task = lease.attempt.task;
  if (again && lease.to_hold) came_back_held_[task.array].add(task.index);
}

void Engine::handle(const AttemptsReturned& event, Time now) {
  if (PilotState* pilot = pilots_.find(event.pilot)) pilot->recalled = false;
  for (const AttemptId& attempt : event.attempts) {
    if (pilots_.current(event.pilot, attempt)) return_lease(attempt.task, now);
    if (Lease* lease = pilots_.claimed(event.pilot, attempt))
      lose_member(*lease, *pilots_.find(event.pilot), Failure::NodeLost, "it has no room for it");
  }
  if (PilotState* pilot = pilots_.find(event.pilot)) end_if_empty(*pilot);
  work_changed_ = true;
}

void Engine::handle(const LinkMeasured& event, Time /*now*/) {
  if (PilotState* pilot = pilots_.find(event.pilot)) pilot->round_trip = event.round_trip;
}

void Engine::handle(const PilotLeaving& event, Time now) {
  PilotState* pilot = pilots_.find(event.pilot);
  if (!pilot) return;
  pilot->leaving = true;
  weighed_ = {};
  pilot->leaving_reason = event.reason;
  if (event.reason == "terminated") sites_.pilot_terminated(event.pilot.allocation, now);
  end_if_empty(*pilot);
  work_changed_ = true;
}

/// A pilot that takes nothing more and holds nothing has no reason to stay.
void Engine::end_if_empty(PilotState& pilot) {
  if (!pilot.connected || pilot.ending || !pilot.is_empty() || !(pilot.leaving || drain_.on))
    return;
  if (pilot.owed_an_answer) return;
  pilot.ending = true;
  sites_.pilot_let_go(pilot.id);
  actions_.push_back(EndPilot{pilot.id});
}

}  // namespace hpcbatch

// Allocations that are kept, and those that are over: what their pilots left behind is read
// before anything of theirs is called lost.
#include "engine/engine.hpp"
#include "engine/sites/keeps.hpp"
#include "engine/sites/site_forecast.hpp"
#include "model/check.hpp"
#include "planted/planted.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <utility>
#include <vector>

namespace hpcbatch {

// An allocation is over: what its pilots left behind is read before anything of theirs is called
// lost, and outputs that are still being staged out are waited for.

void Engine::allocation_over(const AllocationOver& over, Time now) {
  bool holds = false;
  for (auto& [id, pilot] : pilots_.all()) {
    if (id.allocation != over.id) continue;
    holds = holds || !pilot.leases.empty();
    if (pilot.connected) actions_.push_back(FencePilot{id, pilot.incarnation});
    pilot.connected = false;
    pilot.leaving = true;
  }
  const AllocationEntry* entry = sites_.find(over.id);
  HPCBATCH_CHECK(entry);
  if (holds && sites_.site(entry->facts.site)) {
    over_.emplace(over.id, OverAllocation{over});
    actions_.push_back(ReadOutbox{over.id, entry->facts.site});
    return;
  }
  lose_leases(over, now);
  forget_if_empty(over.id);
}

void Engine::handle(const OutboxRead& event, Time now) {
  const auto at = over_.find(event.allocation);
  if (at == over_.end()) return;
  for (const AttemptEnd& result : event.results) {
    // Outputs that were never permitted to be published are not there: such an attempt is lost like
    // any other.
    if (result.outputs_staged || result.of_room ||
        !is_heard_from_outbox(event.allocation, result.attempt))
      continue;
    if (HPCBATCH_PLANTED(outbox_not_read)) continue;
    end_lease(take_lease(result.attempt.task), result.outcome, Blame::None, now);
  }
  for (const AttemptId& attempt : event.coming) {
    if (Lease* lease = pilots_.current(event.allocation, attempt)) outputs_come(*lease, now);
  }
  at->second.outbox_read = true;
  lose_leases(at->second.over, now);
  forget_if_over(event.allocation);
  work_changed_ = true;
}

/// Against whom a death that nobody can explain speaks: those that were at one before, and what had
/// room beside them and had not lived for long; where there are none, all that were leased there,
/// for one that kills its pilot at once was never seen to start.
std::vector<TaskId> Engine::blamed_for(const AllocationOver& over) const {
  std::vector<TaskId> all;
  std::vector<TaskId> suspects;
  std::vector<TaskId> unproven;
  if (!over.unexplained) return all;
  for (const auto& [pilot_id, pilot] : pilots_.all()) {
    // One that has not spoken since the engine's start may not even have begun with what it was
    // given.
    if (pilot_id.allocation != over.id || !pilot.registered) continue;
    for (const TaskId task : pilot.leases) {
      const Lease& lease = *pilots_.lease(task);
      if (lease.has_left || pilots_.failed(task)) continue;
      (lease.suspect ? suspects : all).push_back(task);
      if (lease.counted && is_unproven(lease, pilot.silent_since)) unproven.push_back(task);
    }
  }
  if (suspects.empty()) return all;
  suspects.insert(suspects.end(), unproven.begin(), unproven.end());
  return suspects;
}

/// All but those whose outputs are being staged out.
void Engine::lose_leases(const AllocationOver& over, Time now) {
  const std::vector<TaskId> blamed = blamed_for(over);
  const std::set<TaskId> to_blame(blamed.begin(), blamed.end());
  const Blame blame = to_blame.size() == 1 ? Blame::Alone : Blame::Shared;
  for (const auto& [pilot_id, pilot] : pilots_.all()) {
    if (pilot_id.allocation != over.id) continue;
    const std::set<TaskId> leases = pilot.leases;
    for (const TaskId task : leases) {
      const Lease& lease = *pilots_.lease(task);
      if (lease.has_left) continue;
      if (lease.state == Lease::State::Sent && !to_blame.contains(task) && !runs_once(task)) {
        return_lease(task, now);
        continue;
      }
      if (const Outcome* own = pilots_.failed(task)) {
        Outcome outcome = *own;
        end_lease(take_lease(task), std::move(outcome), Blame::None, now);
        continue;
      }
      Outcome outcome;
      outcome.failure = over.failure;
      outcome.message = over.text;
      outcome.ended = now;
      end_lease(take_lease(task), std::move(outcome), to_blame.contains(task) ? blame : Blame::None,
                now);
    }
  }
  tasks_.tell_ended();
  work_changed_ = true;
}

void Engine::forget_if_empty(const AllocationId& id) {
  const auto holds = [&](const auto& entry) {
    return entry.first.allocation == id && !entry.second.leases.empty();
  };
  if (std::any_of(pilots_.all().begin(), pilots_.all().end(), holds)) return;
  std::erase_if(pilots_.all(), [&](const auto& entry) { return entry.first.allocation == id; });
  over_.erase(id);
  sites_.forget(id);
}

/// A fetch that has come to its end may have been the last thing that was waited for.
void Engine::forget_if_over(const AllocationId& id) {
  const auto at = over_.find(id);
  if (at != over_.end() && at->second.outbox_read) forget_if_empty(id);
}

// Allocations by hand and without work: of which pilots stay whatever there is to do, which are taken
// back from the queue, and pauses that are ended.

void Engine::handle(const KeepAsked& event, Time now) {
  if (auto refusal = Keeps(sites_).ask(event, now)) {
    actions_.push_back(AnswerRefused{event.request, *refusal, false});
    return;
  }
  actions_.push_back(AnswerCount{event.request, event.allocations});
  if (event.allocations == 0) cancel_what_was_kept(now);
  work_changed_ = true;
}

void Engine::handle(const ResumeAsked& event, Time) {
  const auto paused = sites_.resume(event.site);
  if (paused) {
    actions_.push_back(AnswerCount{event.request, *paused});
  } else {
    actions_.push_back(
        AnswerRefused{event.request, fmt::format("there is no site '{}'", event.site), false});
  }
  work_changed_ = true;
}

void Engine::handle(const QueueForeseen& event, Time now) {
  QueueLooks(sites_).foreseen(event, now);
  work_changed_ = true;
}

/// Tells pilots that having nothing to do is no reason to leave, and those that are no longer meant.
void Engine::keep_pilots(Time now) {
  Keeps keeps(sites_);
  const bool any_kept = keeps.is_of_concern();
  const std::map<AllocationId, Time> stay =
      any_kept && !drain_.on ? staying(sites_, now) : std::map<AllocationId, Time>{};
  auto& all = pilots_.all();
  for (auto first = all.begin(); first != all.end();) {
    const auto last = std::find_if(std::next(first), all.end(), [&](const auto& one) {
      return one.first.allocation != first->first.allocation;
    });
    // Its batch job holds the node of one that leaves as long as the others are there, and tasks
    // over several nodes would miss it.
    const bool are_several = std::next(first) != last;
    const bool go_together =
        are_several && !drain_.on &&
        std::any_of(first, last, [](const auto& one) { return !one.second.is_empty(); });
    const auto kept = stay.find(first->first.allocation);
    for (; first != last; ++first) {
      PilotState& pilot = first->second;
      if (!(any_kept || are_several) || !pilot.connected || pilot.leaving || pilot.ending) continue;
      std::optional<Time> until = kept == stay.end() ? std::nullopt : std::optional(kept->second);
      if (go_together && pilot.end) until = std::max(until, pilot.end);
      if (until == pilot.stays_until) continue;
      pilot.stays_until = until;
      actions_.push_back(StayPilot{first->first, until ? *until - now : Duration{}});
    }
  }
  if (any_kept) keeps.told(!stay.empty());
}

/// Of shapes that are kept no more: where nothing waits, nobody has a use for them.
void Engine::cancel_what_was_kept(Time now) {
  if (tasks_.queue().size() != 0 || pilots_.backlogs() != 0) return;
  for (const AllocationId& id : Keeps(sites_).left_queued())
    cancel_allocation(id, "its pilots are kept no longer, and nothing waits for them", now);
}

/// Batch jobs that still wait when nothing is left to do, not even for what runs to make more: each
/// would start, be idle, and end.
void Engine::take_back_unused(Time now) {
  if (!tasks_.arrays().empty() || !pilots_.leases().empty()) return nothing_since_.reset();
  if (!nothing_since_) nothing_since_ = now;
  for (const AllocationId& id : Keeps(sites_).unused(now - *nothing_since_))
    cancel_allocation(id, "nothing is left to do for it", now);
}

// Pilots that cannot write to their workspace start nothing; what has ended there waits for it, and
// its site is asked for no more of them.

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

// Tasks over several nodes: leased to as many pilots of one allocation at once, all or none.  The
// first, the head, runs the task's command; the others hold room for what that starts there.
// Through the head goes all that is said of the task; its end frees the others, and what ends one of
// the others ends the task.
#include "engine/engine.hpp"
#include "model/check.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace hpcbatch {
namespace {

/// What a member says of its own end that is the task's: it has used more than it was granted, or
/// its time is over.  All else means that the node is lost to it.
Failure failure_of_task(Failure of_member) {
  switch (of_member) {
    case Failure::OomTask:
    case Failure::OomGpu:
    case Failure::DiskTask:
    case Failure::GpuError:
    case Failure::PilotWalltime:
    case Failure::PilotPreempted:
    case Failure::PilotKilled:
      return of_member;
    default:
      return Failure::NodeLost;
  }
}

}  // namespace

/// The other pilots of its allocation that have room for a task of the class now; nothing where
/// these are too few.
std::optional<std::vector<PilotState*>> Engine::members_for(const PilotState& head, ClassId id,
                                                            Time now) const {
  const ResourceClass& its_class = tasks_.queue().get(id);
  const auto is_free = [&](const PilotState& pilot) {
    return pilot.takes_tasks() && !(pilot.braked && !pilot.is_empty()) &&
           PilotTable::has_room(its_class, pilot, pilot.free, now) &&
           leaves_kept_room(pilot, id, now) && may_be_tried(its_class, pilot, now);
  };
  std::vector<PilotState*> members;
  const auto& all = pilots_.all();
  for (auto at = all.lower_bound({head.id.allocation, 0});
       at != all.end() && at->first.allocation == head.id.allocation &&
       members.size() + 1 < its_class.needs.nodes;
       ++at) {
    if (at->first != head.id && is_free(at->second))
      members.push_back(&const_cast<PilotState&>(at->second));
  }
  if (members.size() + 1 < its_class.needs.nodes) return std::nullopt;
  return members;
}

/// Room at the members, and what each of the pilots is told of the others.
std::shared_ptr<const NodesOfTask> Engine::claim_members(TaskId task,
                                                         const std::vector<PilotState*>& members) {
  Lease& lease = *pilots_.lease(task);
  auto nodes = std::make_shared<NodesOfTask>();
  nodes->nodes.push_back({lease.pilot.rank, lease.held_by->node});
  for (PilotState* member : members) {
    const auto grant = grant_for(*member, lease.in_class, member->free, true);
    HPCBATCH_CHECK(grant);
    pilots_.claim(lease, *member, grant->amounts);
    nodes->nodes.push_back({member->id.rank, member->node});
  }
  return nodes;
}

/// What a member is told: limits of memory are its own, that of time is the head's.
SendLeases Engine::claim_of(const Lease& lease, const PilotState& member,
                            const SendLeases::Lease& of_head) {
  SendLeases::Lease claim = of_head;
  claim.granted = member.claims.at(lease.attempt.task);
  if (claim.memory_is_limit) claim.granted.set(kMemory, of_head.granted.get(kMemory));
  claim.time_limit.reset();
  claim.runs_once = false;
  claim.holds_room = true;
  return {member.id, {std::move(claim)}};
}

/// The task has ended, or is to be leased anew: nobody holds room for it any more, and what runs
/// there is killed at once.
void Engine::free_members(Lease& lease) {
  const std::vector<std::uint32_t> ranks = lease.members.get();
  for (const std::uint32_t rank : ranks) {
    PilotState* member = pilots_.find(lease.member(rank));
    HPCBATCH_CHECK(member);
    pilots_.unclaim(lease, *member);
    if (member->connected)
      actions_.push_back(KillAttempt{member->id, lease.attempt, Failure::Cancelled, true});
    end_if_empty(*member);
  }
}

Lease Engine::take_lease(TaskId task) {
  Lease taken = pilots_.release(task);
  if (taken.members.get().empty()) return taken;
  const Rare<std::vector<std::uint32_t>> members = taken.members;
  free_members(taken);
  // Whoever asks what pilots had it asks for these too.
  taken.members = members;
  return taken;
}

/// One of its nodes is lost to a task: the head is told to end it as that, now or when it is back.
void Engine::lose_member(Lease& lease, PilotState& member, Failure as, const std::string& why) {
  pilots_.unclaim(lease, member);
  end_if_empty(member);
  if (lease.told == Failure::Ok) {
    lease.told = as;
    pilots_.note_lost(lease, fmt::format("node {} of it was lost: {}", member.node, why));
  }
  if (lease.held_by->connected && !lease.has_left && !lease.cancelled)
    actions_.push_back(KillAttempt{lease.pilot, lease.attempt, lease.told, false});
  work_changed_ = true;
}

/// What a member says that the attempt has ended there.  It is no end that is kept: the member
/// forgets it at once, and it is not to be acknowledged.
bool Engine::member_ended(const PilotId& id, const AttemptEnd& end) {
  PilotState* member = pilots_.find(id);
  if (!member) return false;
  member->owed_an_answer = false;
  actions_.push_back(KillAttempt{id, end.attempt, Failure::Cancelled, true});
  if (Lease* lease = pilots_.claimed(id, end.attempt)) {
    lose_member(
        *lease, *member, failure_of_task(end.outcome.failure),
        end.outcome.message.empty() ? "what held its room there has ended" : end.outcome.message);
  }
  return false;
}

/// A task that failed while a node of it was not there failed because of that.
void Engine::blame_lost_member(const Lease& lease, Outcome& outcome) const {
  const bool is_its_own =
      outcome.failure == Failure::ToolFailed || outcome.failure == Failure::ToolSignal;
  const std::string* why = pilots_.why_lost(lease.attempt.task);
  if (why && (is_its_own || outcome.failure == lease.told)) {
    outcome.failure = lease.told;
    outcome.message = *why;
    return;
  }
  if (!is_its_own) return;
  for (const std::uint32_t rank : lease.members.get()) {
    const PilotState* member = pilots_.find(lease.member(rank));
    if (member->connected) continue;
    outcome.failure = Failure::NodeLost;
    outcome.message = fmt::format("it failed when its pilot {} on {} was not there any more",
                                  to_string(member->id), member->node);
    return;
  }
}

/// A pilot has registered: which of its claims it still holds.
void Engine::reconcile_claims(PilotState& pilot, const std::vector<HeldAttempt>& there,
                              bool same_process) {
  std::set<TaskId> held;
  for (const HeldAttempt& one : there) {
    if (pilots_.claimed(pilot.id, one.attempt)) held.insert(one.attempt.task);
  }
  std::vector<TaskId> claimed;
  for (const auto& [task, granted] : pilot.claims) claimed.push_back(task);
  for (const TaskId task : claimed) {
    Lease& lease = *pilots_.lease(task);
    const Needs& needs = tasks_.find(task.array)->terms->needs;
    if (held.contains(task)) {
      pilots_.settle_claim(lease, needs, pilot);
    } else if (same_process && lease.held_by->registered) {
      // It never got there.
      actions_.push_back(claim_again(lease, pilot));
    } else {
      lose_member(lease, pilot, Failure::NodeLost,
                  fmt::format("pilot {} no longer has it", to_string(pilot.id)));
    }
  }
}

SendLeases Engine::claim_again(const Lease& lease, const PilotState& member) const {
  auto nodes = std::make_shared<NodesOfTask>();
  nodes->nodes.push_back({lease.pilot.rank, lease.held_by->node});
  for (const std::uint32_t rank : lease.members.get())
    nodes->nodes.push_back({rank, pilots_.find(lease.member(rank))->node});
  const Needs& needs = tasks_.find(lease.attempt.task.array)->terms->needs;
  SendLeases::Lease of_head = lease_of(lease.attempt, needs, {lease.granted}, *lease.held_by);
  of_head.nodes = std::move(nodes);
  return claim_of(lease, member, of_head);
}

}  // namespace hpcbatch

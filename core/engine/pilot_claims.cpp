// A pilot's key is good for what was given to that pilot: its own leases, one node of its allocation,
// what was asked for.  One that says otherwise is not heard again.
#include "engine/engine.hpp"
#include "model/site.hpp"
#include "planted/planted.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <string>

namespace hpcbatch {
namespace {

/// The larger of what was asked for and what is configured now, which a pilot that started after an
/// engine with another configuration was told.
AskedFor most_of(const AskedFor& asked, const Shape* shape) {
  AskedFor most = asked;
  if (!shape) return most;
  most.nodes = std::max(most.nodes, shape->nodes);
  if (shape->walltime == Duration{}) most.walltime = {};
  if (most.walltime != Duration{}) most.walltime = std::max(most.walltime, shape->walltime);
  const Resources configured = usable(*shape);
  for (const auto& [name, amount] : configured.entries())
    most.capacity.set(name, std::max(amount, most.capacity.get(name)));
  return most;
}

std::optional<std::string> more_than(const Resources& capacity, const Resources& most) {
  auto at = most.entries().begin();
  for (const auto& [name, amount] : capacity.entries()) {
    // Both are sorted.
    while (at != most.entries().end() && at->first < name) ++at;
    const Amount asked = at != most.entries().end() && at->first == name ? at->second : Amount{};
    if (amount > asked || amount < Amount{}) {
      Resources one;
      one.set(name, amount);
      return fmt::format("it says that it has {}, and its shape has {}", hpcbatch::show(one),
                         hpcbatch::show(most));
    }
  }
  return std::nullopt;
}

}  // namespace

std::optional<std::string> Engine::overstep(const PilotClaims& claims) const {
  for (const PilotClaims::OfAttempt& claim : claims.attempts) {
    if (auto why = overstep(claims.pilot, claim)) return why;
  }
  if (!claims.node && !claims.capacity) return std::nullopt;
  const AllocationEntry* entry = sites_.find(claims.pilot.allocation);
  // One that is over, or that an earlier program asked for, has no bounds that are known.
  if (!entry || !entry->facts.asked) return std::nullopt;
  const AskedFor most = most_of(*entry->facts.asked, sites_.shape_of(claims.pilot.allocation));
  if (claims.pilot.rank >= most.nodes) {
    return fmt::format("it says that it is rank {} of an allocation of {} node{}",
                       claims.pilot.rank, most.nodes, most.nodes == 1 ? "" : "s");
  }
  if (claims.node && most.walltime != Duration{} &&
      (!claims.node->time_left || *claims.node->time_left > most.walltime))
    return "it says that it has more time than its shape's walltime";
  return claims.capacity ? more_than(*claims.capacity, most.capacity) : std::nullopt;
}

/// What was once its own may come late, and again.  Where a task is another's now, an attempt of
/// this start of the engine was given to it only where it has come back from there: each other
/// lease has a later number.
std::optional<std::string> Engine::overstep(const PilotId& pilot,
                                            const PilotClaims::OfAttempt& claim) const {
  const AttemptId& attempt = claim.attempt;
  const Lease* lease = pilots_.lease(attempt.task);
  if (!lease || lease->pilot == pilot) return std::nullopt;
  // Pilots of one allocation share tasks over several nodes.
  if (lease->pilot.allocation == pilot.allocation &&
      tasks_.find(attempt.task.array)->terms->needs.nodes > 1)
    return std::nullopt;
  const bool is_it = lease->attempt == attempt;
  if (!is_it) {
    if (attempt.engine_start() != engine_start_) return std::nullopt;
    if (attempt.number < lease->attempt.number) return std::nullopt;
    if (pilots_.was_given_back(attempt.task, pilot)) return std::nullopt;
  }
  return fmt::format("it spoke of task {} ('{}'), which was given to pilot {}",
                     to_string(attempt.task), claim.said, to_string(lease->pilot));
}

void Engine::handle(const PilotOverstepped& event, Time now) {
  const AllocationEntry* entry = sites_.find(event.pilot.allocation);
  PilotState* pilot = pilots_.find(event.pilot);
  actions_.push_back(FencePilot{event.pilot, event.incarnation, event.why});
  if (!entry) return;
  // Somebody else who has its key: the process that is there has said nothing wrong.
  if (pilot && pilot->connected && pilot->incarnation != event.incarnation) return;
  sites_.overstepped(event.pilot,
                     fmt::format("pilot {} said what it may not, and is not heard any more: {}",
                                 to_string(event.pilot), event.why),
                     now);
  if (pilot && pilot->connected) {
    handle(PilotDisconnected{event.pilot}, now);
    pilot->leaving = true;
    pilot->leaving_reason = event.why;
  }
  // Its tasks are leased again when the batch system says that it is gone, as those of any pilot
  // that is lost.  Others of its allocation go on as long as such a one is waited for.
  const bool was_one = entry->facts.fenced.contains(event.pilot.rank);
  if (was_one && !allocations_with_pilots().contains(event.pilot.allocation))
    cancel_allocation(event.pilot.allocation, "its pilot said what it may not: " + event.why, now);
  work_changed_ = true;
}

bool Engine::is_heard_from_outbox(const AllocationId& allocation, const AttemptId& attempt) const {
  const Lease* lease = pilots_.lease(attempt.task);
  if (!lease || lease->attempt != attempt || lease->pilot.allocation != allocation) return false;
  const AllocationEntry* entry = sites_.find(allocation);
  return !entry || !entry->facts.fenced.contains(lease->pilot.rank);
}

/// Rises within a start of the engine: by one for neighbours of an array that go to one pilot, which
/// are said and kept as one; else by a step that whoever knows one epoch cannot guess another by.
std::uint64_t Engine::epoch_of_next(const PilotId& pilot, TaskId task, std::uint32_t number) {
  constexpr std::uint64_t kMostSteps = 1 << 12;
  constexpr std::uint64_t kFirst = std::uint64_t{1} << 32;
  constexpr unsigned kStartBits = AttemptId::kStartBits;
  constexpr std::uint64_t kScarce = std::uint64_t{1} << (kStartBits - 1);
  constexpr std::uint64_t kOfStart = (std::uint64_t{1} << kStartBits) - 1;
  const std::uint64_t last = last_lease_.attempt.epoch & kOfStart;
  const AttemptId next = neighbour(last_lease_.attempt, 1);
  const bool goes_on =
      last != 0 && last_lease_.pilot == pilot && next.task == task && next.number == number;
  std::uint64_t step = 1;
  if (last == 0) {
    step += random_() % kFirst;
  } else if (!goes_on && last < kScarce) {
    step += random_() % kMostSteps;
  }
  const std::uint64_t start = HPCBATCH_PLANTED(epoch_without_start) ? 0 : engine_start_;
  last_lease_ = {pilot, {task, number, (start << kStartBits) | (last + step)}};
  return last_lease_.attempt.epoch;
}

}  // namespace hpcbatch

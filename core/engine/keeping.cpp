// Allocations by hand and without work: of which pilots stay whatever there is to do, which are taken
// back from the queue, and pauses that are ended.
#include "engine/engine.hpp"
#include "engine/sites/keeps.hpp"
#include "engine/sites/queue_looks.hpp"

#include <fmt/format.h>

namespace hpcbatch {

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
  if (!keeps.is_of_concern()) return;
  const std::map<AllocationId, Time> stay =
      drain_.on ? std::map<AllocationId, Time>{} : staying(sites_, now);
  for (auto& [id, pilot] : pilots_.all()) {
    if (!pilot.connected || pilot.leaving || pilot.ending) continue;
    const auto at = stay.find(id.allocation);
    const std::optional<Time> until = at == stay.end() ? std::nullopt : std::optional(at->second);
    if (until == pilot.stays_until) continue;
    pilot.stays_until = until;
    actions_.push_back(StayPilot{id, until ? *until - now : Duration{}});
  }
  keeps.told(!stay.empty());
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

}  // namespace hpcbatch

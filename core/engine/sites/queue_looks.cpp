#include "engine/sites/queue_looks.hpp"

#include <algorithm>

namespace hpcbatch {
namespace {

using namespace std::chrono_literals;

// A listing of all of a queue costs its batch system more than one of ours.
constexpr Duration kQueueLookEvery = 1min;
// One that takes longer, or fails, is a burden: the next one comes later, up to an hour.
constexpr Duration kSlowLook = 10s;
constexpr std::uint32_t kMostDoublings = 6;

bool is_of_interest(const SiteState& state,
                    const std::map<AllocationId, AllocationEntry>& allocations) {
  const bool any_kept = std::any_of(state.shapes.begin(), state.shapes.end(),
                                    [](const ShapeState& shape) { return shape.keep.has_value(); });
  return any_kept || std::any_of(allocations.begin(), allocations.end(), [&](const auto& each) {
           const Allocation& facts = each.second.facts;
           return facts.site == state.site.name && facts.state == AllocationState::Queued;
         });
}

}  // namespace

void QueueLooks::on_time(Time now) {
  for (SiteState& state : table_.sites_) {
    SiteState::QueueLook& look = state.look;
    look.is_wanted = state.site.look_at_queue && !look.is_impossible &&
                     is_of_interest(state, table_.allocations_);
    if (!look.is_wanted || look.in_flight || now < look.next) continue;
    look.in_flight = true;
    look.asked_at = now;
    table_.actions_.push_back(LookAtQueue{state.site.name});
  }
}

void QueueLooks::foreseen(const QueueForeseen& event, Time now) {
  if (!table_.site(event.site)) return;
  SiteState& state = table_.state_of(event.site);
  state.look.in_flight = false;
  state.look.trouble = event.trouble;
  state.look.is_impossible = event.is_impossible;
  const bool is_slow = !event.trouble.empty() || now - state.look.asked_at > kSlowLook;
  state.look.slow = is_slow ? std::min(state.look.slow + 1, kMostDoublings) : 0;
  state.look.next = state.look.asked_at + kQueueLookEvery * (std::int64_t{1} << state.look.slow);
  for (ShapeState& shape : state.shapes) {
    const auto at = event.shapes.find(shape.shape.name);
    if (at == event.shapes.end()) continue;
    shape.foreseen = {event.looked, at->second.waits, at->second.by_limits};
    shape.blind = at->second.blind;
    shape.closed_at = at->second.is_closed ? std::optional(event.looked) : std::nullopt;
    shape.learned = {event.looked, at->second.learned};
    shape.learned_from = event.model_waits;
  }
  for (const auto& [name, start] : event.queued) {
    if (AllocationEntry* entry = table_.entry(AllocationId{name}))
      entry->foreseen = {event.looked, start.waits, start.by_limits};
  }
  state.look.model_trouble = event.model_trouble;
  // One that was asked for before anything was learned.
  for (auto& [id, entry] : table_.allocations_) {
    if (entry.facts.site != event.site || entry.facts.state != AllocationState::Queued) continue;
    const ShapeState* shape = table_.shape_state(entry.facts);
    if (shape && entry.learned.waits.empty()) entry.learned = shape->learned;
    table_.note_told(entry, now);
  }
}

std::optional<Time> QueueLooks::next_wake(const SiteTable& table) {
  std::optional<Time> wake;
  for (const SiteState& state : table.sites()) {
    const SiteState::QueueLook& look = state.look;
    if (look.is_wanted && !look.in_flight) wake = wake ? std::min(*wake, look.next) : look.next;
  }
  return wake;
}

}  // namespace hpcbatch

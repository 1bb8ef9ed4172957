#include "engine/sites/site_forecast.hpp"

#include "model/site.hpp"
#include "provision/plan.hpp"

#include <algorithm>
#include <utility>

namespace hpcbatch {
namespace {

using namespace std::chrono_literals;

// A submit whose outcome is not known after this long is nothing to count on.
constexpr Duration kAnswerDue = 1min;
// For so long it is waited for what the batch system says of an allocation whose pilot was ended
// from outside.
constexpr Duration kReasonDue = 30s;

constexpr double kHalf = 0.5, kMost = 0.9;
// Until one that has started is seen to.
constexpr Duration kSeenWithin = 30s;

/// Of what may still come: that which was to have started says nothing any more.
ForeseenStart still_to_come(const ForeseenStart& start, Time now) {
  ForeseenStart left{.looked = start.looked, .waits = {}, .by_limits = start.by_limits};
  for (const Duration wait : start.waits)
    if (start.looked + wait >= now) left.waits.push_back(wait);
  return left;
}

/// Nothing where it was to have started long ago.
std::optional<StartBound> bound_of(const ForeseenStart& start, Time now) {
  const ForeseenStart left = still_to_come(start, now);
  if (left.waits.empty() && now - (start.looked + start.waits.back()) > kSeenWithin)
    return std::nullopt;
  StartBound bound{.half = std::nullopt, .most = now};
  if (const auto most = left.quantile(kMost)) bound.most = left.looked + *most;
  if (start.by_limits) return bound;
  const auto half = left.quantile(kHalf);
  bound.half = half ? left.looked + *half : now;
  return bound;
}

}  // namespace

/// One that was made for what may not be chosen any more still counts for the shape that it was
/// made from.
bool SiteForecast::counts_for(const Allocation& facts, const ShapeState& shape) const {
  if (facts.shape == shape.shape.name) return true;
  return shape.shape.made_for.empty() && configured_name(facts.shape) == shape.shape.name &&
         !table_.shape_state(facts);
}

bool SiteForecast::is_on_its_way(const AllocationEntry& entry) const {
  const SiteState* at = table_.site(entry.facts.site);
  if (!at || !at->answers()) return false;
  if (entry.seen == BatchState::Outage || entry.seen == BatchState::Held) return false;
  return entry.facts.state >= AllocationState::Queued || now_ - entry.asked_at < kAnswerDue;
}

std::optional<Duration> SiteForecast::expected_wait(const SiteState& site,
                                                    const ShapeState& shape) const {
  std::optional<Duration> queued_for;
  for (const auto& [id, entry] : table_.allocations()) {
    const Allocation& facts = entry.facts;
    if (facts.site != site.site.name || facts.shape != shape.shape.name) continue;
    if (facts.state == AllocationState::Queued)
      queued_for = std::max(queued_for.value_or(Duration{}), now_ - facts.opened);
  }
  const auto known = provision::expected_wait(shape.waits, queued_for, now_);
  if (!shape.foreseen.by_limits && sees_queue(shape, shape.foreseen))
    return *shape.foreseen.quantile(kHalf);
  if (is_fresh(shape.learned, now_))
    if (const auto bound = learned_bound(shape, shape.learned))
      return std::max(Duration{}, *bound->half - now_);
  return known;
}

std::optional<StartBound> SiteForecast::learned_bound(const ShapeState& shape,
                                                      const ForeseenStart& start) const {
  if (!shape.model_held.is_right()) return std::nullopt;
  const ForeseenStart left = still_to_come(start, now_);
  // A twentieth of what may come is no bound for nine in ten.
  if (left.waits.size() < 2) return std::nullopt;
  return StartBound{.half = left.looked + *left.quantile(kHalf),
                    .most = left.looked + *left.quantile(kMost),
                    .by = StartBound::By::Model,
                    .from = shape.learned_from};
}

bool SiteForecast::sees_queue(const ShapeState& shape, const ForeseenStart& start) const {
  if (!is_fresh(start, now_) || !shape.looks_held.is_right()) return false;
  // What an own limit holds back, or what waits for longer than was told, no queue explains.
  return std::none_of(
      table_.allocations().begin(), table_.allocations().end(), [&](const auto& each) {
        const AllocationEntry& entry = each.second;
        if (entry.facts.state != AllocationState::Queued ||
            table_.shape_state(entry.facts) != &shape)
          return false;
        return entry.seen == BatchState::LimitReached ||
               (entry.told_most && now_ - entry.facts.opened > *entry.told_most + kSeenWithin);
      });
}

bool SiteForecast::starts_nothing(const ShapeState& shape) const {
  return shape.closed_at && is_recent(*shape.closed_at, now_);
}

std::optional<Duration> SiteForecast::expected_start(const AllocationEntry& entry) const {
  const ShapeState* shape = table_.shape_state(entry.facts);
  if (!shape || entry.facts.state != AllocationState::Queued || starts_nothing(*shape))
    return std::nullopt;
  const auto whole = provision::expected_wait(shape->waits, std::nullopt, now_);
  if (!whole) return std::nullopt;
  return *whole - (now_ - entry.facts.opened);
}

std::optional<StartBound> SiteForecast::start_bound(const AllocationEntry& entry) const {
  const ShapeState* shape = table_.shape_state(entry.facts);
  if (!shape || entry.facts.state != AllocationState::Queued || !is_on_its_way(entry))
    return std::nullopt;
  if (starts_nothing(*shape)) return std::nullopt;
  const auto seen =
      sees_queue(*shape, entry.foreseen) ? bound_of(entry.foreseen, now_) : std::nullopt;
  if (seen && seen->half) return seen;
  if (const auto learned = learned_bound(*shape, entry.learned)) return learned;
  if (seen) return seen;
  const auto waited = std::chrono::duration_cast<std::chrono::seconds>(now_ - entry.facts.opened);
  const auto bound = shape->wait_history.bound(std::max<std::int64_t>(waited.count(), 0));
  if (!bound) return std::nullopt;
  return StartBound{entry.facts.opened + std::chrono::seconds(bound->half),
                    entry.facts.opened + std::chrono::seconds(bound->most), StartBound::By::Waits,
                    bound->from};
}

std::optional<StartBound> SiteForecast::next_start(const ShapeState& shape) const {
  if (starts_nothing(shape)) return std::nullopt;
  const auto seen =
      sees_queue(shape, shape.foreseen) ? bound_of(shape.foreseen, now_) : std::nullopt;
  if (seen && seen->half) return seen;
  if (is_fresh(shape.learned, now_))
    if (const auto learned = learned_bound(shape, shape.learned)) return learned;
  if (seen) return seen;
  const auto bound = shape.wait_history.bound();
  if (!bound) return std::nullopt;
  return StartBound{now_ + std::chrono::seconds(bound->half),
                    now_ + std::chrono::seconds(bound->most), StartBound::By::Waits, bound->from};
}

Duration SiteForecast::left(const AllocationEntry& entry) const {
  const ShapeState* shape = table_.shape_state(entry.facts);
  const auto longest = shape ? longest_task(shape->shape) : std::nullopt;
  if (!longest) return Duration::max();
  if (!entry.facts.running_since) {
    const auto start = start_bound(entry);
    return start && start->half ? std::max(Duration{}, *start->half - now_) + *longest
                                : Duration::max();
  }
  Time end = *entry.facts.running_since + *longest;
  if (entry.time_left)
    end = std::min(end, entry.seen_at + *entry.time_left - end_margin(shape->shape.walltime));
  return std::max(Duration{}, end - now_);
}

std::vector<Duration> SiteForecast::likely_waits(const ShapeState& shape) const {
  const bool sees = sees_queue(shape, shape.foreseen);
  if (sees && !shape.foreseen.by_limits) return shape.foreseen.waits;
  if (is_fresh(shape.learned, now_) && shape.model_held.is_right()) return shape.learned.waits;
  std::vector<Duration> waits;
  for (const foresight::Seconds wait : shape.wait_history.told())
    waits.emplace_back(std::chrono::seconds(wait));
  // Who comes too early relieves the one before it.
  return waits.empty() && sees ? shape.foreseen.waits : waits;
}

std::uint32_t SiteForecast::renewals_of(const SiteState& site, const ShapeState& shape) const {
  if (!shape.keep) return 0;
  provision::Kept kept{.wanted = shape.keep->allocations,
                       .until = shape.keep->until - now_,
                       .left = {},
                       .waits = likely_waits(shape)};
  for (const auto& [id, entry] : table_.allocations()) {
    const Allocation& facts = entry.facts;
    if (facts.site != site.site.name || facts.shape != shape.shape.name || facts.cancel_asked)
      continue;
    if (facts.state != AllocationState::Ended) kept.left.push_back(left(entry));
  }
  return provision::renewals(std::move(kept),
                             {.waiting = site.site.waiting_cost, .idle = site.site.idle_cost});
}

// NOLINTNEXTLINE(readability-function-cognitive-complexity)
std::vector<provision::Outlet> SiteForecast::outlets() const {
  std::vector<provision::Outlet> outlets;
  for (const SiteState& state : table_.sites()) {
    for (const ShapeState& shape : state.shapes) {
      provision::Outlet outlet{
          .site = state.site.name,
          .shape = shape.shape,
          .proven = shape.proven,
          .open = shape.may_be_asked(now_) && state.answers() && !state.workspace_in_trouble(),
          .wait = expected_wait(state, shape).value_or(Duration{}),
          .renew = renewals_of(state, shape)};
      for (const auto& [id, entry] : table_.allocations()) {
        if (entry.facts.site != state.site.name || !counts_for(entry.facts, shape)) continue;
        if (entry.facts.state == AllocationState::Ended) continue;
        ++(entry.facts.state == AllocationState::Running ? outlet.running : outlet.queued);
        if (entry.facts.state == AllocationState::Submitting) ++outlet.submitting;
        // What is not counted on is not asked for once more either.
        if (entry.facts.pilots_seen == 0 && !is_on_its_way(entry)) outlet.open = false;
        if (entry.terminated_at && now_ - *entry.terminated_at < kReasonDue) outlet.open = false;
        if (entry.seen == BatchState::LimitReached) outlet.open = false;
      }
      outlets.push_back(std::move(outlet));
    }
  }
  return outlets;
}

std::vector<provision::SiteLimits> SiteForecast::limits() const {
  std::vector<provision::SiteLimits> limits;
  for (const SiteState& state : table_.sites()) {
    provision::SiteLimits site{state.site.name,
                               0,
                               0,
                               state.site.max_queued,
                               state.site.max_running,
                               state.site.waiting_cost,
                               state.site.idle_cost,
                               state.site.idle_after};
    for (const auto& [id, entry] : table_.allocations()) {
      if (entry.facts.site != state.site.name || entry.facts.state == AllocationState::Ended)
        continue;
      ++(entry.facts.state == AllocationState::Running ? site.running : site.queued);
    }
    limits.push_back(std::move(site));
  }
  return limits;
}

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

#include "engine/sites/site_outlook.hpp"

#include "model/choices.hpp"

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

}  // namespace

/// One that was made for what may not be chosen any more still counts for the shape that it was
/// made from.
bool SiteOutlook::counts_for(const Allocation& facts, const ShapeState& shape) const {
  if (facts.shape == shape.shape.name) return true;
  return shape.shape.made_for.empty() && configured_name(facts.shape) == shape.shape.name &&
         !book_.shape_state(facts);
}

bool SiteOutlook::is_on_its_way(const AllocationEntry& entry) const {
  const SiteState* at = book_.site(entry.facts.site);
  if (!at || !at->answers()) return false;
  if (entry.seen == BatchState::Outage || entry.seen == BatchState::Held) return false;
  return entry.facts.state >= AllocationState::Queued || now_ - entry.asked_at < kAnswerDue;
}

std::optional<Duration> SiteOutlook::expected_wait(const SiteState& site,
                                                   const ShapeState& shape) const {
  std::optional<Duration> queued_for;
  for (const auto& [id, entry] : book_.allocations()) {
    const Allocation& facts = entry.facts;
    if (facts.site != site.site.name || facts.shape != shape.shape.name) continue;
    if (facts.state == AllocationState::Queued)
      queued_for = std::max(queued_for.value_or(Duration{}), now_ - facts.opened);
  }
  return provision::expected_wait(shape.waits, queued_for, now_);
}

std::optional<Duration> SiteOutlook::expected_start(const AllocationEntry& entry) const {
  const ShapeState* shape = book_.shape_state(entry.facts);
  if (!shape || entry.facts.state != AllocationState::Queued) return std::nullopt;
  const auto whole = provision::expected_wait(shape->waits, std::nullopt, now_);
  if (!whole) return std::nullopt;
  return *whole - (now_ - entry.facts.opened);
}

std::optional<StartBound> SiteOutlook::start_bound(const AllocationEntry& entry) const {
  const ShapeState* shape = book_.shape_state(entry.facts);
  if (!shape || entry.facts.state != AllocationState::Queued || !is_on_its_way(entry))
    return std::nullopt;
  const auto waited = std::chrono::duration_cast<std::chrono::seconds>(now_ - entry.facts.opened);
  const auto bound = shape->wait_history.bound(std::max<std::int64_t>(waited.count(), 0));
  if (!bound) return std::nullopt;
  return StartBound{entry.facts.opened + std::chrono::seconds(bound->half),
                    entry.facts.opened + std::chrono::seconds(bound->most), bound->from};
}

// NOLINTNEXTLINE(readability-function-cognitive-complexity)
std::vector<provision::Outlet> SiteOutlook::outlets() const {
  std::vector<provision::Outlet> outlets;
  for (const SiteState& state : book_.sites()) {
    for (const ShapeState& shape : state.shapes) {
      provision::Outlet outlet{
          .site = state.site.name,
          .shape = shape.shape,
          .proven = shape.proven,
          .open = shape.may_be_asked(now_) && state.answers() && !state.workspace_in_trouble(),
          .wait = expected_wait(state, shape).value_or(Duration{})};
      for (const auto& [id, entry] : book_.allocations()) {
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

std::vector<provision::SiteLimits> SiteOutlook::limits() const {
  std::vector<provision::SiteLimits> limits;
  for (const SiteState& state : book_.sites()) {
    provision::SiteLimits site{state.site.name,
                               0,
                               0,
                               state.site.max_queued,
                               state.site.max_running,
                               state.site.waiting_cost,
                               state.site.idle_cost,
                               state.site.idle_after};
    for (const auto& [id, entry] : book_.allocations()) {
      if (entry.facts.site != state.site.name || entry.facts.state == AllocationState::Ended)
        continue;
      ++(entry.facts.state == AllocationState::Running ? site.running : site.queued);
    }
    limits.push_back(std::move(site));
  }
  return limits;
}

}  // namespace hpcbatch

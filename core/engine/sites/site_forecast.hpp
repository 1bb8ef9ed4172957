// What may be expected of sites at a moment: which allocations come and when, where more could be
// asked for.
#pragma once

#include "engine/sites/site_table.hpp"
#include "provision/plan.hpp"

#include <optional>
#include <vector>

namespace hpcbatch {

class SiteForecast {
 public:
  SiteForecast(const SiteTable& table, Time now) : table_(table), now_(now) {}

  /// Whether an allocation that is not there yet can be counted on to come.
  bool is_on_its_way(const AllocationEntry& entry) const;
  /// The last look at the queue showed that nothing starts there at present (`ShapeState::blind`).
  bool starts_nothing(const ShapeState& shape) const;
  /// How long an allocation that is asked for now waits; nothing where nothing is known.
  std::optional<Duration> expected_wait(const SiteState& site, const ShapeState& shape) const;
  /// Until one that is queued runs; negative: it should run already.
  std::optional<Duration> expected_start(const AllocationEntry& entry) const;
  /// The start of one that is queued, by what the queue shows, else by its shape's waits; nothing
  /// where neither can say.
  std::optional<StartBound> start_bound(const AllocationEntry& entry) const;
  /// Of one that is asked for now.
  std::optional<StartBound> next_start(const ShapeState& shape) const;
  /// Until when tasks may run there; of one that waits as it is expected to start, and where nobody
  /// knows that, for ever.
  Duration left(const AllocationEntry& entry) const;
  /// One for each shape of each site.
  std::vector<provision::Outlet> outlets() const;
  std::vector<provision::SiteLimits> limits() const;

 private:
  bool counts_for(const Allocation& facts, const ShapeState& shape) const;
  /// Whether the queue was seen just now, and what was said of it before holds.
  bool sees_queue(const ShapeState& shape, const ForeseenStart& start) const;
  /// By the model, of one that it told of then; nothing where it has not held, or all that it told
  /// has passed.
  std::optional<StartBound> learned_bound(const ShapeState& shape,
                                          const ForeseenStart& start) const;
  std::vector<Duration> likely_waits(const ShapeState& shape) const;
  std::uint32_t renewals_of(const SiteState& site, const ShapeState& shape) const;

  const SiteTable& table_;
  Time now_;
};

// When to look at what others have in the queues, and what that said.

class QueueLooks {
 public:
  explicit QueueLooks(SiteTable& table) : table_(table) {}

  /// Asks for those that are due: of sites where something waits or is kept.
  void on_time(Time now);
  void foreseen(const QueueForeseen& event, Time now);
  static std::optional<Time> next_wake(const SiteTable& table);

 private:
  SiteTable& table_;
};

}  // namespace hpcbatch

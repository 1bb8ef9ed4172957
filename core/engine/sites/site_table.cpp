// Allocations from the intent to the batch system's answer, and when to ask again.
#include "engine/sites/site_table.hpp"

#include "engine/sites/keeps.hpp"
#include "engine/sites/site_forecast.hpp"
#include "model/check.hpp"
#include "model/quantities.hpp"
#include "model/site.hpp"
#include "planted/planted.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <utility>

namespace hpcbatch {
namespace {

using namespace std::chrono_literals;

// While an unclear submit is being settled, or a pilot is silent, the batch system is asked more
// often.
constexpr Duration kImpatientPoll = 3s;
constexpr Duration kLongestPollPause = 5min;
constexpr Duration kSlowAnswer = 20s;
// A batch system needs a moment to notice that a pilot it started is gone.
constexpr Duration kFirstLook = 500ms;
// What was seen in a queue says nothing any more.
constexpr Duration kLookIsOld = 3min;
// Until one that has started is seen to.
constexpr Duration kToBeSeen = 10s;
// Batch jobs that one command ends are seen as ended within so long: a pilot has half a minute to
// go, and polls may be late.
constexpr Duration kOneCommand = 1min;

/// When a list that was asked for is late.
Time slow_from(const SiteState& site) {
  return site.asked_at + kSlowAnswer;
}

}  // namespace

SiteTable::SiteTable(Actions& actions, const std::vector<Site>& sites, std::string engine_name,
                     std::uint64_t seed)
    : actions_(actions), prefix_("h" + std::move(engine_name)), random_(seed) {
  for (const Site& site : sites) {
    SiteState state{.site = site};
    for (const Shape& shape : site.shapes) state.shapes.push_back({.shape = shape});
    sites_.push_back(std::move(state));
  }
}

void SiteTable::restore(const Snapshot& snapshot, Time now) {
  for (const Allocation& facts : snapshot.allocations) {
    AllocationEntry entry{.facts = facts};
    // What was being submitted when the engine died may or may not have reached the batch system.
    if (facts.state <= AllocationState::Submitting) entry.facts.state = AllocationState::Unclear;
    // Over some transports a command outlives the engine that began it.
    if (const SiteState* at = site(facts.site); at && entry.facts.state == AllocationState::Unclear)
      entry.may_arrive_until = now + std::min<Duration>(kSubmitDeadline, 3 * at->site.settle_after);
    entry.asked_at = now;
    entry.seen_at = now;
    entry.seen = facts.state == AllocationState::Running ? BatchState::Running : BatchState::Queued;
    entry.pilots_away = facts.pilots_seen;
    entry.may_run_already = true;
    allocations_.emplace(facts.id, std::move(entry));
    poll_soon(facts.site, now);
  }
  for (SiteState& state : sites_) {
    for (const Allocation& facts : snapshot.allocations) {
      const auto choices = choices_in_name(facts.shape);
      const bool allowed =
          std::all_of(choices.begin(), choices.end(),
                      [&](const std::string& choice) { return may_choose(state.site, choice); });
      if (facts.site == state.site.name && !choices.empty() && allowed) make_shapes(state, choices);
    }
    for (ShapeState& shape : state.shapes) {
      shape.proven =
          std::find(snapshot.proven.begin(), snapshot.proven.end(),
                    std::pair{state.site.name, shape.shape.name}) != snapshot.proven.end();
      for (const PastStart& past : snapshot.past_starts) {
        if (past.site == state.site.name && past.shape == shape.shape.name)
          shape.learn_wait(past.running_since - past.opened, past.running_since);
      }
    }
  }
}

AllocationEntry* SiteTable::entry(const AllocationId& id) {
  const auto at = allocations_.find(id);
  return at == allocations_.end() ? nullptr : &at->second;
}
const AllocationEntry* SiteTable::find(const AllocationId& id) const {
  const auto at = allocations_.find(id);
  return at == allocations_.end() ? nullptr : &at->second;
}
const SiteState* SiteTable::site(const std::string& name) const {
  const auto at = std::find_if(sites_.begin(), sites_.end(),
                               [&](const SiteState& s) { return s.site.name == name; });
  return at == sites_.end() ? nullptr : &*at;
}
SiteState& SiteTable::state_of(const std::string& name) {
  const auto at = std::find_if(sites_.begin(), sites_.end(),
                               [&](const SiteState& s) { return s.site.name == name; });
  HPCBATCH_CHECK(at != sites_.end());
  return *at;
}
const ShapeState* SiteTable::shape_state(const Allocation& allocation) const {
  const SiteState* at = site(allocation.site);
  if (!at) return nullptr;
  for (const ShapeState& shape : at->shapes) {
    if (shape.shape.name == allocation.shape) return &shape;
  }
  return nullptr;
}
ShapeState* SiteTable::shape_state(const Allocation& allocation) {
  return const_cast<ShapeState*>(std::as_const(*this).shape_state(allocation));
}
const Shape* SiteTable::shape_of(const AllocationId& id) const {
  const AllocationEntry* found = find(id);
  const ShapeState* shape = found ? shape_state(found->facts) : nullptr;
  return shape ? &shape->shape : nullptr;
}

AllocationId SiteTable::draw_name() {
  static constexpr std::string_view kLetters = "0123456789abcdefghijklmnopqrstuvwxyz";
  while (true) {
    AllocationId id{prefix_};
    while (id.name.size() < 15) id.name += kLetters[random_() % kLetters.size()];
    if (!find(id) && !ended_names_.contains(id.name)) return id;
  }
}

void SiteTable::save(const AllocationEntry& entry) {
  actions_.push_back(SaveAllocation{entry.facts});
}

void SiteTable::poll_soon(const std::string& name, Time at) {
  if (!site(name)) return;  // its site is no longer configured: its pilots alone can speak for it
  SiteState& state = state_of(name);
  if (state.next_poll == Time{} || state.next_poll > at) state.next_poll = at;
}

void SiteTable::open(const provision::Ask& ask, Time now) {
  for (std::uint32_t i = 0; i < ask.count; ++i) {
    AllocationEntry entry;
    entry.facts = {.id = draw_name(),
                   .site = ask.site,
                   .shape = ask.shape,
                   .state = AllocationState::Submitting,
                   .opened = now};
    entry.asked_at = now;
    if (ShapeState* shape = shape_state(entry.facts)) {
      entry.facts.asked = AskedFor{shape->shape.nodes, usable(shape->shape), shape->shape.walltime};
      // The first takes the place that was looked at.
      if (is_fresh(shape->foreseen, now) && !std::exchange(shape->foreseen.is_taken, true))
        entry.told_most = shape->foreseen.quantile(ShapeState::kNine);
      if (is_fresh(shape->learned, now)) entry.learned = shape->learned;
    }
    save(entry);
    actions_.push_back(OpenAllocation{entry.facts.id, ask.site, ask.shape});
    allocations_.emplace(entry.facts.id, std::move(entry));
  }
}

void SiteTable::cancel(const AllocationId& id, Time now) {
  AllocationEntry* found = entry(id);
  if (!found || found->facts.state == AllocationState::Ended || found->facts.cancel_asked) return;
  found->facts.cancel_asked = true;
  found->cancelled_at = now;
  save(*found);
  if (site(found->facts.site))
    actions_.push_back(CancelAllocation{id, found->facts.site, found->facts.number});
}

void SiteTable::accepted(const AllocationAccepted& event, Time now) {
  AllocationEntry* found = entry(event.allocation);
  if (!found || found->facts.state >= AllocationState::Queued) return;
  found->facts.state = AllocationState::Queued;
  found->facts.number = event.number;
  found->asked_at = now;
  found->seen_at = now;
  save(*found);
  if (ShapeState* shape = shape_state(found->facts)) shape->proven = true;
  note_told(*found, now);
  poll_soon(found->facts.site, now + kImpatientPoll);
  if (!found->facts.cancel_asked) return;
  // The first cancel was too early for a batch system that did not have it yet.
  found->cancelled_at = now;
  actions_.push_back(CancelAllocation{event.allocation, found->facts.site, event.number});
}

void BackOff::clear_failures() {
  failures.clear();
  cancels = 0;
}

namespace {

void pause_until(BackOff& pause, Time until, const std::string& why) {
  if (pause.until && *pause.until >= until) return;
  pause.until = until;
  pause.why = why;
}

}  // namespace

void SiteTable::back_off(ShapeState& shape, Duration first, Duration most, const std::string& why,
                         Time now) {
  if (HPCBATCH_PLANTED(no_back_off)) return;
  BackOff& pause = shape.back_off;
  pause.failed_at = now;
  // What fails while the pause lasts was asked for before it: many refusals at once are one
  // failure.
  std::uint32_t& of_kind = pause.failures[first];
  if (!pause.until || *pause.until <= now || of_kind == 0) ++of_kind;
  std::uint32_t as_bad = 0;
  for (auto at = pause.failures.lower_bound(first); at != pause.failures.end(); ++at)
    as_bad += at->second;
  const std::uint32_t doublings = std::min<std::uint32_t>(as_bad - 1, 16);
  pause_until(pause, now + std::min(most, first * (std::int64_t{1} << doublings)), why);
}

/// Respect whoever did it: wait a little the first time, long the next.
void SiteTable::pause_after_cancel(ShapeState& shape, const AllocationEntry& entry,
                                   const std::string& text, Time now) {
  if (HPCBATCH_PLANTED(no_back_off)) return;
  BackOff& pause = shape.back_off;
  // Ends close together of what was there at the first were one command.
  const bool same = pause.cancelled_at && entry.facts.opened <= *pause.cancelled_at &&
                    now - *pause.cancelled_at < kOneCommand;
  pause.cancelled_at = now;
  pause.failed_at = now;
  if (same) return;
  const std::uint32_t doublings = std::min<std::uint32_t>(pause.cancels, 16);
  const Duration length = doublings == 0
                              ? Duration{30s}
                              : std::min<Duration>(1h, 5min * (std::int64_t{1} << (doublings - 1)));
  ++pause.cancels;
  pause_until(pause, now + length, text);
}

/// Tasks that chose what it refuses end with its words (Engine::fail_what_is_refused), and those that
/// come later too until the pause is over.  What the configuration alone names a person has to mend.
void SiteTable::refused_for_good(ShapeState& shape, const std::string& why,
                                 const std::string& words, Time now) {
  if (shape.shape.made_for.empty()) return back_off(shape, 1h, 24h, why, now);
  back_off(shape, 1min, 1h, why, now);
  shape.back_off.never = words;
}

void SiteTable::did_well(const AllocationId& id) {
  AllocationEntry* found = entry(id);
  if (!found || std::exchange(found->did_well, true)) return;
  ShapeState* shape = shape_state(found->facts);
  if (shape && !shape->back_off.until && found->facts.opened > shape->back_off.failed_at)
    shape->back_off.clear_failures();
}

std::optional<std::uint64_t> SiteTable::resume(const std::string& name) {
  if (!site(name)) return std::nullopt;
  std::uint64_t paused = 0;
  for (ShapeState& shape : state_of(name).shapes) {
    if (std::exchange(shape.back_off, {}).until) ++paused;
  }
  return paused;
}

bool SiteTable::refused(const AllocationRefused& event, Time now) {
  AllocationEntry* found = entry(event.allocation);
  if (!found || found->facts.state >= AllocationState::Queued) return false;
  ShapeState* shape = shape_state(found->facts);
  if (event.refusal == Refusal::Unclear) {
    found->facts.state = AllocationState::Unclear;
    found->facts.reason = "the answer to its submission was lost: " + event.text;
    found->asked_at = now;
    if (event.may_be_under_way) found->may_arrive_until = now + kSubmitDeadline;
    save(*found);
    poll_soon(found->facts.site, now + kImpatientPoll);
    if (HPCBATCH_PLANTED(asked_again_when_unclear)) {
      found->facts.state = AllocationState::Submitting;
      save(*found);
      actions_.push_back(OpenAllocation{found->facts.id, found->facts.site, found->facts.shape});
    }
    return false;
  }
  found->facts.state = AllocationState::Ended;
  found->facts.ended = now;
  found->facts.reason = "refused: " + event.text;
  if (shape) {
    switch (event.refusal) {
      case Refusal::Permanent:
        refused_for_good(*shape, "refused by the batch system: " + event.text, event.text, now);
        break;
      case Refusal::Limit:
        back_off(*shape, 1min, 1h, "a limit of the batch system is reached: " + event.text, now);
        break;
      default:
        back_off(*shape, 10s, 10min, event.text, now);
    }
  }
  return true;
}

std::optional<Duration> ForeseenStart::quantile(double q) const {
  if (waits.empty()) return std::nullopt;
  const auto last = static_cast<double>(waits.size() - 1);
  return waits[static_cast<std::size_t>(std::ceil(q * last))];
}

bool is_fresh(const ForeseenStart& start, Time now) {
  return !start.waits.empty() && is_recent(start.looked, now);
}

bool is_recent(Time looked, Time now) {
  return now - looked <= kLookIsOld;
}

void ShapeState::learn_wait(Duration wait, Time now) {
  provision::learn_wait(waits, wait, now);
  wait_history.add(std::chrono::duration_cast<std::chrono::seconds>(wait).count());
}

/// Whoever asks now when it starts is told so.
void SiteTable::note_told(AllocationEntry& entry, Time now) const {
  if (entry.told || entry.may_run_already) return;
  const auto bound = SiteForecast(*this, now).start_bound(entry);
  if (!bound) return;
  const Time asked = entry.facts.opened;
  entry.told = ToldStart{.by = bound->by, .half = std::nullopt, .most = bound->most - asked};
  if (bound->half) entry.told->half = *bound->half - asked;
}

/// The batch system or one of its pilots says that it runs.
void SiteTable::runs(AllocationEntry& entry, Time now) {
  Allocation& facts = entry.facts;
  if (std::exchange(facts.state, AllocationState::Running) == AllocationState::Running) return;
  facts.running_since = now;
  ShapeState* shape = shape_state(facts);
  // When one began that has not been seen to wait nobody knows.
  if (!shape || entry.may_run_already) return;
  shape->learn_wait(now - facts.opened, now);
  StartedWaits& started = state_of(facts.site).started;
  started.waits.add(std::chrono::duration<double>(now - facts.opened).count());
  if (entry.told) {
    StartedWaits::Bounds& bounds = started.bounds[entry.told->by];
    ++bounds.told;
    if (now - facts.opened <= entry.told->most + kToBeSeen) ++bounds.held;
    const auto in_seconds = [](Duration time) {
      return std::chrono::duration_cast<std::chrono::seconds>(time).count();
    };
    std::optional<foresight::Seconds> half;
    if (entry.told->half) half = in_seconds(*entry.told->half);
    shape->told[entry.told->by].add(half, in_seconds(entry.told->most + kToBeSeen),
                                    in_seconds(now - facts.opened));
  }
  if (entry.told_most) shape->looks_held.add(now - facts.opened <= *entry.told_most + kToBeSeen);
  if (const auto most = entry.learned.quantile(ShapeState::kNine))
    shape->model_held.add(now - entry.learned.looked <= *most + kToBeSeen);
}

bool SiteTable::pilot_registered(const PilotRegistered& event, Time now) {
  AllocationEntry* found = entry(event.pilot.allocation);
  if (!found || found->facts.state == AllocationState::Ended) return false;
  Allocation& facts = found->facts;
  if (facts.number.empty()) facts.number = event.batch_number;
  runs(*found, now);
  facts.reason.clear();
  // Its other pilots were as silent, and have as long to come back.
  if (found->seen == BatchState::Suspended) found->resumed_at = now;
  found->seen = BatchState::Running;
  if (ShapeState* shape = shape_state(facts); shape && event.refusals.empty()) shape->proven = true;
  if (event.pilot.rank + 1 > facts.pilots_seen) {
    facts.pilots_seen = event.pilot.rank + 1;
    found->pilots_away += 1;
  }
  if (found->pilots_away > 0) --found->pilots_away;
  found->alive_at = now;
  found->absent_polls = 0;
  save(*found);
  return true;
}

void SiteTable::workspace_seen(const PilotId& pilot, const std::string& trouble, Time now) {
  const AllocationEntry* allocation = find(pilot.allocation);
  if (!allocation || !site(allocation->facts.site)) return;
  SiteState& state = state_of(allocation->facts.site);
  if (trouble.empty()) {
    state.workspace_trouble.erase(pilot);
    state.writers.insert(pilot);
    return;
  }
  if (state.workspace_trouble.empty()) state.workspace_trouble_since = now;
  state.workspace_trouble[pilot] = trouble;
  state.writers.erase(pilot);
}

void SiteTable::pilot_gone(const PilotId& pilot, Time now) {
  const AllocationId& id = pilot.allocation;
  AllocationEntry* found = entry(id);
  if (found && site(found->facts.site)) {
    state_of(found->facts.site).workspace_trouble.erase(pilot);
    state_of(found->facts.site).writers.erase(pilot);
  }
  if (!found || found->facts.state == AllocationState::Ended) return;
  ++found->pilots_away;
  found->seen_at = now;
  found->alive_at = now;
  found->absent_polls = 0;
  poll_soon(found->facts.site, now + kFirstLook);
}

void SiteTable::overstepped(const PilotId& pilot, const std::string& text, Time now) {
  AllocationEntry* found = entry(pilot.allocation);
  if (!found || found->facts.state == AllocationState::Ended) return;
  // A rank that it never had is refused whenever it comes.
  const bool is_one = !found->facts.asked || pilot.rank < found->facts.asked->nodes;
  if (is_one && !found->facts.fenced.insert(pilot.rank).second) return;
  found->facts.reason = text;
  save(*found);
  of_no_use(pilot.allocation, text, now);
}

void SiteTable::pilot_terminated(const AllocationId& id, Time now) {
  AllocationEntry* found = entry(id);
  if (!found || found->facts.state == AllocationState::Ended) return;
  found->terminated_at = now;
  poll_soon(found->facts.site, now + kFirstLook);
}

void SiteTable::pilot_let_go(const PilotId& pilot) {
  if (AllocationEntry* found = entry(pilot.allocation)) found->let_go.insert(pilot.rank);
}

void SiteTable::of_no_use(const AllocationId& id, const std::string& text, Time now) {
  AllocationEntry* found = entry(id);
  if (!found || std::exchange(found->of_no_use, true)) return;
  if (ShapeState* shape = shape_state(found->facts)) back_off(*shape, 30s, 1h, text, now);
}

void SiteTable::forget(const AllocationId& id) {
  AllocationEntry* found = entry(id);
  HPCBATCH_CHECK(found && found->facts.state == AllocationState::Ended);
  save(*found);
  if (site(found->facts.site)) actions_.push_back(ForgetAllocation{id, found->facts.site});
  if (site(found->facts.site)) {
    SiteState& state = state_of(found->facts.site);
    std::erase_if(state.workspace_trouble,
                  [&](const auto& trouble) { return trouble.first.allocation == id; });
    std::erase_if(state.writers, [&](const PilotId& pilot) { return pilot.allocation == id; });
  }
  ended_names_.insert(id.name);
  allocations_.erase(id);
}

// NOLINTNEXTLINE(readability-function-cognitive-complexity)
void SiteTable::on_time(Time now) {
  for (SiteState& state : sites_) {
    for (ShapeState& shape : state.shapes) {
      if (shape.back_off.until && *shape.back_off.until <= now) {
        shape.back_off.until.reset();
        shape.back_off.never.clear();
      }
    }
    bool any = false;
    bool impatient = false;
    for (const auto& [id, entry] : allocations_) {
      if (entry.facts.site != state.site.name || entry.facts.state == AllocationState::Ended)
        continue;
      any = true;
      if (entry.facts.state == AllocationState::Unclear) impatient = true;
      if (entry.pilots_away > 0 && now - entry.seen_at < 2min) impatient = true;
    }
    if (!any) {
      // Nobody asks it any more, and so nobody knows.
      state.next_poll = {};
      state.failed_polls = 0;
      state.trouble.clear();
      state.trouble_since.reset();
      continue;
    }
    if (state.poll_in_flight) {
      if (state.trouble.empty() && now >= slow_from(state)) {
        state.trouble = "the batch system has not answered yet";
        state.trouble_since = state.asked_at;
      }
      continue;
    }
    if (state.next_poll == Time{}) state.next_poll = now + state.site.poll_every;
    if (state.next_poll > now) continue;
    state.poll_in_flight = true;
    state.asked_at = now;
    const Duration every =
        impatient ? std::min(kImpatientPoll, state.site.poll_every) : state.site.poll_every;
    state.next_poll = now + every;
    actions_.push_back(PollSite{state.site.name});
  }
}

void SiteTable::poll_failed(const SitePollFailed& event, Time now) {
  SiteState& state = state_of(event.site);
  state.poll_in_flight = false;
  state.trouble = event.text;
  if (!state.trouble_since) state.trouble_since = now;
  const std::uint32_t doublings = std::min<std::uint32_t>(state.failed_polls++, 8);
  state.next_poll =
      now + std::min(kLongestPollPause, state.site.poll_every * (std::int64_t{1} << doublings));
}

std::vector<AllocationOver> SiteTable::out_of_reach(const std::set<AllocationId>& alive, Time now) {
  const Duration lost_after = Site{}.lost_after;
  std::vector<AllocationOver> ended;
  for (auto& [id, entry] : allocations_) {
    Allocation& facts = entry.facts;
    if (site(facts.site) || alive.contains(id) || facts.state == AllocationState::Ended) continue;
    if (now - entry.seen_at < lost_after) continue;
    facts.state = AllocationState::Ended;
    facts.ended = now;
    facts.reason = fmt::format(
        "allocation {}: its site {} is no longer in the configuration, and no pilot of it was "
        "there for {}",
        id.name, facts.site, show_duration(lost_after));
    ended.push_back({id, Failure::PilotKilled, false, facts.reason});
  }
  return ended;
}

std::optional<Time> SiteTable::next_wake() const {
  std::optional<Time> wake;
  const auto earlier = [&](Time at) { wake = wake ? std::min(*wake, at) : at; };
  for (const SiteState& state : sites_) {
    if (state.next_poll != Time{} && !state.poll_in_flight) earlier(state.next_poll);
    if (state.next_poll != Time{} && state.poll_in_flight && state.trouble.empty())
      earlier(slow_from(state));
    for (const ShapeState& shape : state.shapes) {
      if (shape.back_off.until) earlier(*shape.back_off.until);
    }
  }
  return wake;
}

/// Nothing where some shape may still run it.
std::optional<std::string> SiteTable::refusal_for_good(const Needs& needs) const {
  std::optional<std::string> why;
  for (const SiteState& state : sites_) {
    for (const ShapeState& shape : state.shapes) {
      if (!may_run_at(needs, state.site.name) || !could_run(needs, shape.shape)) continue;
      if (shape.back_off.never.empty()) return std::nullopt;
      if (why) continue;
      why = fmt::format(
          "never_fits: the batch system of {0} refuses {1}: {2}; choose another, or when it was "
          "mended there, 'hpcbatch sites resume {0}' and 'hpcbatch retry' of the task",
          state.site.name, fmt::join(shape.shape.made_for, ", "), shape.back_off.never);
    }
  }
  return why;
}

bool SiteTable::refuses_any_for_good() const {
  return std::any_of(sites_.begin(), sites_.end(), [](const SiteState& state) {
    return std::any_of(state.shapes.begin(), state.shapes.end(),
                       [](const ShapeState& shape) { return !shape.back_off.never.empty(); });
  });
}

MadeShapes SiteTable::made_shapes() {
  return {sites_, allocations_};
}

// NOLINTNEXTLINE(readability-function-cognitive-complexity)
void SiteTable::check_invariants() const {
  std::set<std::string> watched;
  for (const auto& [id, entry] : allocations_) {
    const Allocation& facts = entry.facts;
    HPCBATCH_CHECK(facts.id == id && !ended_names_.contains(id.name));
    HPCBATCH_CHECK(entry.pilots_away <= facts.pilots_seen);
    HPCBATCH_CHECK(facts.state != AllocationState::Running || facts.running_since);
    if (facts.state != AllocationState::Ended && site(facts.site)) watched.insert(facts.site);
  }
  for (const SiteState& state : sites_) {
    HPCBATCH_CHECK((state.next_poll != Time{} || state.poll_in_flight) ==
                   (watched.contains(state.site.name) || state.poll_in_flight));
    for (const ShapeState& shape : state.shapes)
      HPCBATCH_CHECK(!shape.back_off.until || shape.back_off.has_failed());
  }
}

}  // namespace hpcbatch

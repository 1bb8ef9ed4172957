#include "provision/plan.hpp"

#include "model/check.hpp"
#include "model/site.hpp"
#include "planted/planted.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <numeric>

namespace hpcbatch::provision {
namespace {

constexpr Duration kUnknownRun = std::chrono::seconds{60};
// Work that is done sooner than that where a pilot is already is not worth an allocation.
constexpr Duration kWorthAnAllocation = std::chrono::minutes{1};
// A task that takes no time at all still costs its start.
constexpr Duration kShortestRun = std::chrono::milliseconds{1};
// That a batch job takes around its tasks.
constexpr Duration kStartAndEnd = std::chrono::minutes{1};
// Before so many have ended, or what ran has run for so long together, nobody knows how soon the
// others could be done.
constexpr std::uint64_t kFewestRuns = 10;
constexpr Duration kLeastSeen = std::chrono::minutes{1};

/// Gives as much of `tasks` to the supply as it has room for, of one without an end within
/// `patience`; returns how much is left over.
double fill(const Demand& demand, double tasks, Supply& supply, std::optional<Duration> patience) {
  if (!may_run_at(demand.needs, supply.site) ||
      !has_tags(supply.tags, supply.made_for, demand.needs) || supply.nodes < demand.needs.nodes)
    return tasks;
  const double room = tasks_in_room(demand, supply.capacity, supply.left ? supply.left : patience);
  if (std::isinf(room)) return 0;
  if (room <= 0 || supply.busy >= 1) return tasks;
  const double taken = std::min(tasks, room * (1 - supply.busy));
  supply.busy += taken / room;
  return tasks - taken;
}

/// GPUs that would lie idle under this class: a shape that wastes fewer is the better one.
std::int64_t wasted_gpus(const Needs& needs, const Shape& shape) {
  const std::size_t way = way_into(needs, usable(shape)).value_or(0);
  return way_of(needs, way).gpus() == Amount{} ? shape.capacity.gpus().ticks : 0;
}

SiteLimits& limits_of(std::vector<SiteLimits>& sites, const std::string& name) {
  const auto at =
      std::find_if(sites.begin(), sites.end(), [&](const SiteLimits& s) { return s.site == name; });
  HPCBATCH_CHECK(at != sites.end());
  return *at;
}

std::uint32_t left_of(std::uint32_t limit, std::uint32_t used) {
  return limit > used ? limit - used : 0;
}

/// How many allocations there are of a shape of the configuration and all that were made from it.
struct OfShape {
  std::uint32_t queued{0};
  std::uint32_t running{0};
};

OfShape of_shape(const Outlet& outlet, const std::vector<Outlet>& outlets) {
  OfShape sum;
  const std::string name = configured_name(outlet.shape.name);
  for (const Outlet& other : outlets) {
    if (other.site != outlet.site || configured_name(other.shape.name) != name) continue;
    sum.queued += other.queued;
    sum.running += other.running;
  }
  return sum;
}

/// How many more of the outlet's shape may be asked for now.
std::uint32_t allowed(const Outlet& outlet, const std::vector<Outlet>& outlets,
                      const SiteLimits& site) {
  if (!outlet.open) return 0;
  if (HPCBATCH_PLANTED(limit_of_site_overlooked)) return left_of(site.max_queued + 2, site.queued);
  std::uint32_t count = std::min(left_of(site.max_queued, site.queued),
                                 left_of(site.max_running, site.queued + site.running));
  if (outlet.shape.max_queued != 0 || outlet.shape.max_running != 0) {
    const OfShape all = of_shape(outlet, outlets);
    if (outlet.shape.max_queued != 0)
      count = std::min(count, left_of(outlet.shape.max_queued, all.queued));
    if (outlet.shape.max_running != 0)
      count = std::min(count, left_of(outlet.shape.max_running, all.queued + all.running));
  }
  if (!outlet.proven) count = std::min(count, left_of(1, outlet.queued));
  return count;
}

/// A time that was guessed is no promise.
bool is_promised(const Needs& needs) {
  return needs.time && !(needs.guess && needs.guess->time);
}

Duration unknown_run(const Demand& demand) {
  return demand.needs.time.value_or(kUnknownRun);
}

}  // namespace

Duration expected_run(const Demand& demand) {
  if (is_promised(demand.needs)) return std::max(kShortestRun, *demand.needs.time);
  const Running& running = demand.running;
  if (!demand.mean_run) return std::max(unknown_run(demand), running.longest);
  // Short tasks end first: the mean of what ended says too little while what runs has run for
  // longer.  What ended counts as often as it did, so that one task that hangs does not speak for
  // thousands.
  const double sum =
      static_cast<double>(demand.mean_run->count()) * static_cast<double>(demand.runs) +
      static_cast<double>(running.sum.count());
  const auto tasks = static_cast<double>(demand.runs + running.tasks);
  const Duration mean = tasks > 0 ? Duration{std::llround(sum / tasks)} : *demand.mean_run;
  return std::max({kShortestRun, *demand.mean_run, mean});
}

Duration expected_run(const Demand& demand, Duration elapsed) {
  if (is_promised(demand.needs)) return std::max(kShortestRun, *demand.needs.time);
  return std::max({kShortestRun, demand.mean_run.value_or(unknown_run(demand)), 2 * elapsed});
}

Duration expected_run(const Demand& demand, const Resources& capacity) {
  if (demand.run_on.empty() || is_promised(demand.needs)) return expected_run(demand);
  const auto device = device_in(demand.needs, capacity);
  const auto known = std::find_if(demand.run_on.begin(), demand.run_on.end(),
                                  [&](const auto& on) { return on.first == device; });
  return known == demand.run_on.end() ? expected_run(demand)
                                      : std::max(kShortestRun, known->second);
}

Seen seen_of(const Demand& demand) {
  const Duration ended =
      demand.mean_run.value_or(Duration{}) * static_cast<std::int64_t>(demand.runs);
  return {demand.runs + demand.running.tasks, demand.runs, ended + demand.running.elapsed};
}

void count_running(Demand& demand, Duration elapsed) {
  const Duration expected = expected_run(demand, elapsed);
  ++demand.running.tasks;
  demand.running.elapsed += elapsed;
  demand.running.sum += expected;
  demand.running.longest = std::max(demand.running.longest, expected);
}

double busy_with(const Demand& demand, Duration elapsed, const Resources& capacity, Duration left) {
  const auto side_by_side = static_cast<double>(how_often(demand.needs, capacity));
  if (side_by_side == 0) return 1;
  // However long it takes, it has no more than its own place.
  const double place = 1 / side_by_side;
  const double room = tasks_in_room(demand, capacity, left);
  if (room <= 0) return place;
  const auto expected = static_cast<double>(expected_run(demand, elapsed).count());
  const double to_come = std::clamp(1 - static_cast<double>(elapsed.count()) / expected, 0.0, 1.0) *
                         expected / static_cast<double>(expected_run(demand).count());
  return std::min(place, to_come / room);
}

double tasks_in_room(const Demand& demand, const Resources& capacity,
                     std::optional<Duration> left) {
  const auto side_by_side = static_cast<double>(how_often(demand.needs, capacity));
  if (side_by_side == 0) return 0;
  if (!left) return std::numeric_limits<double>::infinity();
  const double rounds = static_cast<double>(left->count()) /
                        static_cast<double>(expected_run(demand, capacity).count());
  // Only a time that was asked for is a promise: what is left over at the end is then of no use.
  return side_by_side * std::max(0.0, is_promised(demand.needs) ? std::floor(rounds) : rounds);
}

namespace {

/// How long all that waits takes in one pilot of the outlet's shape; nothing where it has no choice.
Duration work_in(const Demand& demand, const Outlet& outlet) {
  if (demand.run_on.empty()) return {};
  Demand by_device = demand;
  // A limit is the same everywhere.
  by_device.needs.time.reset();
  const Resources capacity = usable(outlet.shape);
  const double run = static_cast<double>(expected_run(by_device, capacity).count());
  const auto places =
      static_cast<double>(std::max<std::uint64_t>(1, how_often(demand.needs, capacity)));
  constexpr double kLongest = 1e15;  // microseconds: thirty years
  return Duration{static_cast<std::int64_t>(
      std::min(kLongest, run * std::max(1.0, static_cast<double>(demand.tasks) / places)))};
}

/// The outlets that could run it and waste the fewest GPUs, the earliest expected start first, or
/// end where it has a choice; else in the configuration's order.
std::vector<Outlet*> outlets_for(const Demand& demand, std::vector<Outlet>& outlets) {
  const Needs& needs = demand.needs;
  std::vector<Outlet*> fitting;
  std::int64_t least = std::numeric_limits<std::int64_t>::max();
  for (Outlet& outlet : outlets) {
    if (!may_run_at(needs, outlet.site) || !could_run(needs, outlet.shape)) continue;
    fitting.push_back(&outlet);
    least = std::min(least, wasted_gpus(needs, outlet.shape));
  }
  std::erase_if(fitting,
                [&](const Outlet* outlet) { return wasted_gpus(needs, outlet->shape) > least; });
  std::vector<Duration> waits;
  waits.reserve(fitting.size());
  for (const Outlet* outlet : fitting) waits.push_back(outlet->wait + work_in(demand, *outlet));
  const std::vector<std::size_t> places = start_places(waits);
  std::vector<Outlet*> sorted;
  for (std::size_t place = 0; sorted.size() < fitting.size(); ++place) {
    for (std::size_t at = 0; at < fitting.size(); ++at) {
      if (places[at] == place) sorted.push_back(fitting[at]);
    }
  }
  return sorted;
}

double seconds_of(Duration duration) {
  return std::chrono::duration<double>(duration).count();
}

/// How many tasks of the class run side by side in what is free of these.
double places_of(const Demand& demand, const std::vector<Supply>& supplies) {
  double places = 0;
  for (const Supply& supply : supplies) {
    if (!may_run_at(demand.needs, supply.site) ||
        !has_tags(supply.tags, supply.made_for, demand.needs) ||
        supply.nodes < demand.needs.nodes || (supply.left && *supply.left <= Duration{}))
      continue;
    places += static_cast<double>(how_often(demand.needs, supply.capacity)) *
              std::max(0.0, 1 - supply.busy);
  }
  return places;
}

/// Work of one class, and where it can run at once.
struct Course {
  double run{0};     ///< seconds of a task
  double work{0};    ///< seconds of one place
  double now{0};     ///< tasks side by side
  double places{0};  ///< the same once all have come that are asked for

  /// Seconds until all of it is done, no sooner than one task is.
  double takes(double left, double with) const { return std::max(run, left / with); }
  /// What is left of it when a pilot comes that waits for so long.
  double left_after(double wait) const { return work - now * wait; }
};

/// Whether one more allocation, with so many places, is worth the time that its pilots are idle.
bool is_worth_its_time(const Course& course, double more, const Outlet& outlet,
                       const SiteLimits& site) {
  const double left = course.left_after(seconds_of(outlet.wait));
  // What runs then is nothing for it.
  if (course.places <= 0 || left <= course.places * course.run) return false;
  const double saved = course.takes(left, course.places) - course.takes(left, course.places + more);
  return saved * site.waiting_cost >
         seconds_of(site.idle_after + kStartAndEnd) * site.idle_cost * outlet.shape.nodes;
}

/// How long work may wait for a pilot without an end before an allocation would have done it
/// sooner; nothing where there is no allocation to be had.
std::optional<Duration> patience_of(const Demand& demand, std::vector<Outlet>& outlets,
                                    std::vector<SiteLimits>& sites) {
  std::optional<Duration> patience;
  for (const Outlet* outlet : outlets_for(demand, outlets)) {
    if (!longest_task(outlet->shape) ||
        allowed(*outlet, outlets, limits_of(sites, outlet->site)) == 0)
      continue;
    const Duration done = outlet->wait + kWorthAnAllocation;
    patience = std::min(patience.value_or(done), done);
  }
  return patience;
}

/// Where work may go.
struct Room {
  std::vector<Supply> supplies;
  std::vector<Outlet> outlets;
  std::vector<SiteLimits> sites;
};

Supply pilot_of(const Outlet& outlet, double busy) {
  return {outlet.site,          outlet.shape.tags,          outlet.shape.made_for,
          usable(outlet.shape), longest_task(outlet.shape), busy,
          outlet.shape.nodes};
}

/// Notes that so many more of the outlet's shape are asked for, among those of one class.
void ask(Outlet& outlet, SiteLimits& site, std::uint32_t count, std::vector<Ask>& asks) {
  site.queued += count;
  outlet.queued += count;
  outlet.submitting += count;
  if (count == 0) return;
  const auto same = std::find_if(asks.begin(), asks.end(), [&](const Ask& other) {
    return other.site == outlet.site && other.shape == outlet.shape.name;
  });
  if (same == asks.end())
    asks.push_back({outlet.site, outlet.shape.name, count});
  else
    same->count += count;
}

/// Pilots for what has no room.
void ask_for_room(const Demand& demand, Room& room, std::vector<Ask>& asks) {
  double tasks = static_cast<double>(demand.tasks);
  const std::optional<Duration> patience = patience_of(demand, room.outlets, room.sites);
  for (Supply& supply : room.supplies) tasks = fill(demand, tasks, supply, patience);
  for (Outlet* outlet : outlets_for(demand, room.outlets)) {
    // Half a millionth of a task is rounding, not work.
    if (tasks < 1e-6) break;
    SiteLimits& site = limits_of(room.sites, outlet->site);
    std::uint32_t count = 0;
    for (const std::uint32_t most = allowed(*outlet, room.outlets, site);
         count < most && tasks >= 1e-6; ++count) {
      for (std::uint32_t node = 0; node < outlet->shape.nodes; ++node) {
        Supply supply = pilot_of(*outlet, 0);
        tasks = fill(demand, tasks, supply, patience);
        room.supplies.push_back(std::move(supply));
      }
    }
    ask(*outlet, site, count, asks);
    // The first of a shape goes alone: what it leaves over waits for the batch system's answer.
    if (!outlet->proven && outlet->open && outlet->submitting != 0) tasks = 0;
  }
}

/// How long a task takes at least, by what is known; nothing while that is too little.
std::optional<Duration> known_run(const Demand& demand) {
  if (demand.mean_run && demand.runs >= kFewestRuns)
    return std::max(kShortestRun, *demand.mean_run);
  for (const Seen& seen : {seen_of(demand), demand.of_all}) {
    if (seen.tasks == 0 || (seen.ended < kFewestRuns && seen.time < kLeastSeen)) continue;
    // What runs will have run for longer.
    const Duration run = seen.time / static_cast<std::int64_t>(seen.tasks);
    return std::clamp(run, kShortestRun, std::max(kShortestRun, demand.needs.time.value_or(run)));
  }
  return std::nullopt;
}

/// By shape, the seconds that one pilot of it would take for what is served before.
using Ahead = std::map<const Outlet*, double>;

/// Pilots beside those that have room for all of it, so that it is done sooner.  `places`: tasks
/// side by side on all of these.
void ask_for_speed(const Demand& demand, double places, Room& room, Ahead& ahead,
                   std::vector<Ask>& asks) {
  const std::optional<Duration> run = known_run(demand);
  if (!run || demand.bounded) return;
  Course course{.run = seconds_of(*run), .now = places, .places = places};
  const double own = course.run * static_cast<double>(demand.tasks);
  for (Outlet* outlet : outlets_for(demand, room.outlets)) {
    const auto in_pilot = static_cast<double>(how_often(demand.needs, usable(outlet->shape)));
    course.work = own + ahead[outlet] * in_pilot;
    ahead[outlet] += own / in_pilot;
    // One without an end is never given back.
    if (!longest_task(outlet->shape)) continue;
    SiteLimits& site = limits_of(room.sites, outlet->site);
    const double more = in_pilot * static_cast<double>(outlet->shape.nodes);
    const std::uint32_t most = allowed(*outlet, room.outlets, site);
    std::uint32_t count = 0;
    for (; count < most && is_worth_its_time(course, more, *outlet, site); ++count)
      course.places += more;
    if (count == 0) continue;
    const double busy = std::min(
        1.0, course.takes(course.work, course.places) / seconds_of(*longest_task(outlet->shape)));
    room.supplies.insert(room.supplies.end(), std::size_t{count} * outlet->shape.nodes,
                         pilot_of(*outlet, busy));
    ask(*outlet, site, count, asks);
  }
}

/// Those of kept shapes, which are then room like others.
std::vector<Ask> renew(Room& room) {
  std::vector<Ask> asks;
  for (Outlet& outlet : room.outlets) {
    SiteLimits& site = limits_of(room.sites, outlet.site);
    const std::uint32_t count = std::min(outlet.renew, allowed(outlet, room.outlets, site));
    room.supplies.insert(room.supplies.end(), std::size_t{count} * outlet.shape.nodes,
                         pilot_of(outlet, 0));
    ask(outlet, site, count, asks);
  }
  return asks;
}

}  // namespace

std::vector<Ask> plan(const std::vector<Demand>& demands, std::vector<Supply> supplies,
                      std::vector<Outlet> outlets, std::vector<SiteLimits> sites) {
  Room room{std::move(supplies), std::move(outlets), std::move(sites)};
  std::vector<Ask> all = renew(room);
  Ahead ahead;
  for (const Demand& demand : demands) {
    double places = places_of(demand, room.supplies);
    const std::size_t there = room.supplies.size();
    std::vector<Ask> asks;
    ask_for_room(demand, room, asks);
    for (std::size_t asked = there; asked < room.supplies.size(); ++asked)
      places += static_cast<double>(how_often(demand.needs, room.supplies[asked].capacity));
    ask_for_speed(demand, places, room, ahead, asks);
    all.insert(all.end(), asks.begin(), asks.end());
  }
  return all;
}

namespace {

using namespace std::chrono_literals;

constexpr Duration kForgottenAfter = 24h;
// The part that the latest wait has of the mean.
constexpr std::uint32_t kWeightOfLatest = 3;
// Polls tell of a start only so exactly.
constexpr Duration kSmallDifference = 30s;

bool is_forgotten(const KnownWaits& known, Time now) {
  return known.count == 0 || now - known.latest > kForgottenAfter;
}

/// Whether one that waits for `wait` starts about when one does that waits for the shorter `least`.
bool is_about_as_short(Duration wait, Duration least) {
  return wait - least <= std::max(kSmallDifference, least / 4);
}

}  // namespace

void learn_wait(KnownWaits& known, Duration wait, Time now) {
  if (is_forgotten(known, now)) known = {};
  ++known.count;
  const auto weight = static_cast<std::int64_t>(std::min(known.count, kWeightOfLatest));
  known.mean += (std::max(Duration{}, wait) - known.mean) / weight;
  known.latest = now;
}

std::optional<Duration> expected_wait(const KnownWaits& known, std::optional<Duration> queued_for,
                                      Time now) {
  if (is_forgotten(known, now)) return queued_for;
  return std::max(known.mean, queued_for.value_or(Duration{}));
}

std::vector<std::size_t> start_places(const std::vector<Duration>& waits) {
  std::vector<std::size_t> by_wait(waits.size());
  std::iota(by_wait.begin(), by_wait.end(), std::size_t{0});
  std::stable_sort(by_wait.begin(), by_wait.end(),
                   [&](std::size_t a, std::size_t b) { return waits[a] < waits[b]; });
  std::vector<std::size_t> places(waits.size());
  std::size_t place = 0;
  std::optional<Duration> least;
  for (const std::size_t at : by_wait) {
    if (least && !is_about_as_short(waits[at], *least)) {
      ++place;
      least = waits[at];
    }
    if (!least) least = waits[at];
    places[at] = place;
  }
  return places;
}

namespace {

// From the submit command to the pilot's registration, where the batch system starts it at once.
constexpr Duration kSubmitAndStart = std::chrono::seconds{5};

foresight::Seconds seconds_in(Duration duration) {
  return std::chrono::round<std::chrono::seconds>(duration).count();
}

}  // namespace

std::uint32_t renewals(Kept kept, const foresight::AskingCosts& costs) {
  const auto there = static_cast<std::uint32_t>(kept.left.size());
  // What would come when nobody wants it any more is not asked for.
  const Duration soon = kept.waits.empty() ? Duration{} : kept.waits[kept.waits.size() / 2];
  if (kept.until <= soon) return 0;
  if (there < kept.wanted) return kept.wanted - there;
  std::sort(kept.left.begin(), kept.left.end());
  std::vector<foresight::Seconds> starts;
  starts.reserve(kept.waits.size());
  for (const Duration wait : kept.waits) starts.push_back(seconds_in(wait + kSubmitAndStart));
  std::uint32_t count = 0;
  // Those that are there beyond what is wanted follow the ones that end first.
  for (std::size_t next = there - kept.wanted; next < kept.left.size(); ++next) {
    if (kept.left[next] >= kept.until) break;
    if (!foresight::is_time_to_ask(starts, seconds_in(kept.left[next]), costs)) break;
    ++count;
  }
  return count;
}

}  // namespace hpcbatch::provision

// From waiting work and pilots at hand to allocations to ask for; and what no site could ever run.
#include "engine/engine.hpp"
#include "engine/sites/keeps.hpp"
#include "engine/sites/site_forecast.hpp"

#include "model/quantities.hpp"
#include "model/site.hpp"
#include "provision/plan.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <set>

namespace hpcbatch {
namespace {

// A link that breaks comes back within seconds; a pilot that is silent for longer is no room to
// count on.
constexpr Duration kSilentIsNoCapacity = std::chrono::minutes{1};
// Of a pilot without an end, what is looked at.
constexpr Duration kEndless = std::chrono::minutes{1};

}  // namespace

namespace {

Duration elapsed_of(const Lease& lease, Time now) {
  return lease.started ? now - *lease.started : Duration{};
}

}  // namespace

std::vector<provision::Demand> Engine::demands(Time now) const {
  const ReadyQueue& queue = tasks_.queue();
  std::vector<provision::Demand> classes;
  for (std::size_t i = 0; i < queue.classes(); ++i) {
    const ResourceClass& its_class = queue.get(ClassId(static_cast<std::uint32_t>(i)));
    // What needs several nodes needs a place on each.
    classes.push_back({its_class.needs, its_class.ready * its_class.needs.nodes, its_class.mean_run,
                       its_class.runs});
  }
  for (const ClassId id : queue.waiting_open())
    classes.at(static_cast<std::size_t>(id)).run_on = known_runs(queue.get(id).needs);
  for (const ArrayId id : tasks_.bounded()) {
    for (const QueuePlace& place : tasks_.find(id)->places())
      classes.at(static_cast<std::size_t>(place.in_class)).bounded = true;
  }
  for (const auto& [id, pilot] : pilots_.all()) {
    if (!pilot.connected) continue;
    for (const TaskId task : pilot.in_room) {
      const Lease& lease = *pilots_.lease(task);
      if (!lease.started) continue;
      provision::count_running(classes.at(static_cast<std::size_t>(lease.in_class)),
                               elapsed_of(lease, now));
    }
    if (!pilot.takes_tasks()) continue;
    // What waits at a pilot for room is called back where another has it.
    for (const auto& [in_class, share] : pilot.classes)
      classes.at(static_cast<std::size_t>(in_class)).tasks += share.waiting;
  }
  provision::Seen all;
  for (const provision::Demand& its_class : classes) {
    const provision::Seen seen = provision::seen_of(its_class);
    all.tasks += seen.tasks;
    all.ended += seen.ended;
    all.time += seen.time;
  }
  for (provision::Demand& its_class : classes) its_class.of_all = all;
  return classes;
}

/// The part of a pilot's room that its running tasks will still use.
double Engine::busy_part(const PilotState& pilot, const std::vector<provision::Demand>& classes,
                         Time now) const {
  if (pilot.end && *pilot.end <= now) return 0;
  const Duration left = pilot.end ? *pilot.end - now : kEndless;
  double busy = 0;
  for (const TaskId task : pilot.in_room) {
    const Lease* lease = pilots_.lease(task);
    busy += provision::busy_with(classes.at(static_cast<std::size_t>(lease->in_class)),
                                 elapsed_of(*lease, now), pilot.capacity, left);
  }
  for (const auto& [task, granted] : pilot.claims) {
    const Lease* lease = pilots_.lease(task);
    busy += provision::busy_with(classes.at(static_cast<std::size_t>(lease->in_class)),
                                 elapsed_of(*lease, now), pilot.capacity, left);
  }
  return std::min(1.0, busy);
}

namespace {

bool is_to_stay(const PilotState& pilot, Time now) {
  return pilot.registered && !pilot.leaving && !pilot.ending && !pilot.braked &&
         (pilot.connected || now - pilot.silent_since < kSilentIsNoCapacity);
}

}  // namespace

/// Of allocations of several nodes how many these are, less those whose pilots have come and gone.
std::map<AllocationId, std::uint32_t> Engine::nodes_together(Time now) const {
  std::map<AllocationId, std::uint32_t> together;
  for (const auto& [id, entry] : sites_.allocations()) {
    const Shape* shape = sites_.shape_of(id);
    if (shape && shape->nodes > 1) together[id] = shape->nodes;
  }
  for (const auto& [id, pilot] : pilots_.all()) {
    const auto at = together.find(id.allocation);
    if (at == together.end() || !pilot.registered || is_to_stay(pilot, now)) continue;
    if (at->second > 0) --at->second;
  }
  return together;
}

// NOLINTNEXTLINE(readability-function-cognitive-complexity)
void Engine::ask_for_pilots(Time now) {
  const ReadyQueue& queue = tasks_.queue();
  if (queue.size() == 0 && pilots_.backlogs() == 0 && !keeps_any(sites_)) return;

  const std::vector<provision::Demand> classes = demands(now);
  std::vector<ClassId> waiting(queue.waiting().begin(), queue.waiting().end());
  std::sort(waiting.begin(), waiting.end(), [&](ClassId a, ClassId b) {
    return queue.goes_before(queue.head_of(a), queue.head_of(b));
  });
  // What waits at pilots only was taken before all that is still queued.
  std::vector<provision::Demand> wanted;
  for (const provision::Demand& its_class : classes) {
    const auto id = ClassId(static_cast<std::uint32_t>(&its_class - classes.data()));
    if (its_class.tasks != 0 && queue.get(id).ready == 0) wanted.push_back(its_class);
  }
  for (const ClassId id : waiting) wanted.push_back(classes[static_cast<std::size_t>(id)]);

  std::vector<provision::Supply> supplies;
  std::map<AllocationId, std::uint32_t> registered;
  const std::map<AllocationId, std::uint32_t> together = nodes_together(now);
  const auto nodes_of = [&](const AllocationId& id) {
    const auto at = together.find(id);
    return at == together.end() ? 1 : at->second;
  };
  for (const auto& [id, pilot] : pilots_.all()) {
    if (pilot.registered) ++registered[id.allocation];
    if (!is_to_stay(pilot, now)) continue;
    std::optional<Duration> left;
    if (pilot.end) left = std::max(Duration{}, *pilot.end - now);
    supplies.push_back({pilot.site, pilot.tags, pilot.made_for, pilot.capacity, left,
                        busy_part(pilot, classes, now), nodes_of(id.allocation)});
  }
  const SiteForecast forecast(sites_, now);
  for (const auto& [id, entry] : sites_.allocations()) {
    const Shape* shape = sites_.shape_of(id);
    if (!shape || entry.facts.state == AllocationState::Ended || entry.facts.cancel_asked) continue;
    if (entry.facts.pilots_seen == 0 && !forecast.is_on_its_way(entry)) continue;
    // Pilots of before a restart that have not come back are as silent as others.
    const bool gone = now - started_at_ >= kSilentIsNoCapacity;
    for (std::uint32_t node = std::max(registered[id], gone ? entry.facts.pilots_seen : 0);
         node < shape->nodes; ++node) {
      supplies.push_back({entry.facts.site, shape->tags, shape->made_for, usable(*shape),
                          longest_task(*shape), 0, nodes_of(id)});
    }
  }
  for (const provision::Ask& ask :
       provision::plan(wanted, std::move(supplies), forecast.outlets(), forecast.limits())) {
    sites_.open(ask, now);
  }
}

std::optional<Duration> Engine::longest_for(const Needs& needs) const {
  std::optional<Duration> longest = Duration{};
  for (const SiteState& site : sites_.sites()) {
    if (!may_run_at(needs, site.site.name)) continue;
    for (const ShapeState& shape : site.shapes) {
      Needs without_time = needs;
      without_time.time.reset();
      without_time.time_request.reset();
      if (!could_run(without_time, shape.shape)) continue;
      const auto its_longest = longest_task(shape.shape);
      if (!its_longest) return std::nullopt;
      longest = std::max(*longest, *its_longest);
    }
  }
  return longest;
}

/// Of what has grown from `least` as much as the shape gives that gives most.
Needs Engine::within_shapes(const Needs& grown, const Needs& least) const {
  std::optional<Needs> most;
  for (const SiteState& site : sites_.sites()) {
    if (!may_run_at(least, site.site.name)) continue;
    for (const ShapeState& shape : site.shapes) {
      if (!could_run(least, shape.shape)) continue;
      Needs here = grown;
      const Amount memory = usable(shape.shape).get(kMemory);
      here.amounts.set(kMemory, std::min(grown.amounts.get(kMemory), memory));
      if (const auto longest = longest_task(shape.shape);
          longest && grown.time && !grown.time_request)
        here.time = std::min(*grown.time, *longest);
      const auto amounts = [](const Needs& needs) {
        return std::pair(needs.amounts.get(kMemory), needs.time.value_or(Duration{}));
      };
      if (!most || amounts(*most) < amounts(here)) most = std::move(here);
    }
  }
  return most.value_or(least);
}

namespace {

/// What of the needs a shape cannot give.  Fewer lacks are closer; having nothing of a thing is
/// farther than too little.
struct Misfit {
  std::vector<std::string> lacks;
  std::size_t distance{0};
  void add(std::string lack, bool has_some) {
    lacks.push_back(std::move(lack));
    distance += has_some ? 2 : 3;
  }
};

/// Of a tag that the shape has not.
std::string lacking(const std::string& tag, const Needs& needs, const Site& site) {
  const std::string key(key_of(tag));
  if (!site.choices || !site.choices->contains(key)) return "the tag " + tag;
  const auto& values = site.choices->at(key);
  const auto of_key = [&](const std::string& one) { return key_of(one) == key; };
  if (std::count_if(needs.tags.begin(), needs.tags.end(), of_key) > 1)
    return fmt::format("{} beside another {}, and a batch job has one", tag, key);
  if (may_choose(site, tag)) {
    return fmt::format("{}, and {} sets of choices are in use there, as many as may be", tag,
                       kMostChoiceSets);
  }
  if (!values.empty())
    return fmt::format("{} where tasks may choose {}", tag, fmt::join(values, ", "));
  return fmt::format("{}, which is no such value: it must be 1 to 200 letters, digits and _.:,@/=-",
                     tag);
}

Resources gpus_among(const Resources& there) {
  Resources gpus;
  for (const auto& [name, amount] : there.entries())
    if (name.starts_with(kAnyGpu)) gpus.set(name, amount);
  return gpus;
}

/// What a shape has too little of, to run it in one way.
Misfit compare_amounts(const Resources& amounts, const Resources& there) {
  Misfit misfit;
  for (const auto& [name, amount] : amounts.entries()) {
    Resources one;
    one.set(name, amount);
    if (fits(one, there)) continue;
    const bool any_gpu = names_several_gpus(name) && there.gpus() != Amount{};
    Resources has;
    has.set(name, there.get(name));
    const bool is_spread = any_gpu && there.gpus() >= amount;
    misfit.add(
        fmt::format("{} where it has {}{}", show(one), show(any_gpu ? gpus_among(there) : has),
                    is_spread ? ", and one task's are all of one kind" : ""),
        any_gpu || !has.empty());
  }
  if (misfit.lacks.empty() && !fits(amounts, there)) misfit.add(show(amounts) + " together", true);
  return misfit;
}

Misfit compare(const Needs& needs, const Site& site, const Shape& shape) {
  Misfit misfit = compare_amounts(needs.amounts, usable(shape));
  for (const Resources& other : needs.device->instead) {
    Misfit instead = compare_amounts(other, usable(shape));
    if (instead.distance < misfit.distance) misfit = std::move(instead);
  }
  if (!may_run_at(needs, site.name)) misfit.add("another site", false);
  if (needs.nodes > shape.nodes) {
    misfit.add(fmt::format("{} nodes at once where its batch jobs have {} (`nodes` of a shape)",
                           needs.nodes, shape.nodes),
               true);
  }
  const auto longest = longest_task(shape);
  const auto time = time_to_begin(needs);
  if (time && longest && *time > *longest) {
    misfit.add(fmt::format("{} of time where a task can have {} ({} s; the rest of {} is for the "
                           "pilot's start and end)",
                           show_duration(*time), show_duration(*longest),
                           std::chrono::floor<std::chrono::seconds>(*longest).count(),
                           show_duration(shape.walltime)),
               true);
  }
  for (const std::string& tag : needs.tags)
    if (!has_tags(shape.tags, {tag})) misfit.add(lacking(tag, needs, site), false);
  return misfit;
}

std::string no_shapes_at(const std::string& site, const std::vector<std::string>& known) {
  if (known.empty()) return "there is no site; name one in the configuration";
  return fmt::format(
      "the sites that may run it have no shapes; 'hpcbatch sites check {}' "
      "proposes some",
      site.empty() ? known.front() : site);
}

}  // namespace

/// One sentence where no site can ever run it.
std::vector<std::string> Engine::shapes_for(const Needs& needs) const {
  std::vector<std::string> found;
  for (const SiteState& site : sites_.sites()) {
    if (!may_run_at(needs, site.site.name)) continue;
    // One with these choices is made when the first such task comes.
    const std::vector<std::string> choices = choices_of(needs, site.site);
    for (const ShapeState& shape : site.shapes) {
      if (!shape.shape.made_for.empty()) continue;
      if (could_run(needs, choices.empty() ? shape.shape : made_for(shape.shape, choices)))
        found.push_back(site.site.name + "/" + shape.shape.name);
    }
  }
  return found;
}

std::optional<std::string> Engine::misfit_of(const NewArray& array) const {
  if (!shapes_for(array.needs).empty()) return std::nullopt;
  return misfit(array);
}

/// Of a kind that no shape names: mostly mistyped.
std::optional<std::string> Engine::gpus_nobody_has(const Needs& needs) const {
  if (!needs.device->instead.empty()) return std::nullopt;
  std::set<std::string> kinds;
  for (const SiteState& site : sites_.sites()) {
    for (const ShapeState& shape : site.shapes) {
      const Resources there = usable(shape.shape);
      for (const auto& [name, amount] : there.entries())
        if (name.starts_with(kGpuPrefix)) kinds.insert(name.substr(kGpuPrefix.size()));
    }
  }
  for (const auto& [name, amount] : needs.amounts.entries()) {
    if (kinds.empty() || !name.starts_with(kGpuPrefix)) continue;
    const bool is_there = std::any_of(kinds.begin(), kinds.end(), [&name = name](const auto& kind) {
      return takes_gpu(name, std::string(kGpuPrefix) + kind);
    });
    if (!is_there)
      return fmt::format("never_fits: no shape has a GPU of kind '{}'; there are {}",
                         name.substr(kGpuPrefix.size()), fmt::join(kinds, ", "));
  }
  return std::nullopt;
}

std::optional<std::string> Engine::misfit(const NewArray& array) const {
  const Needs& needs = array.needs;
  std::vector<std::string> known;
  for (const SiteState& site : sites_.sites()) known.push_back(site.site.name);
  std::vector<std::string> named = needs.not_on;
  if (!needs.site.empty()) named.insert(named.begin(), needs.site);
  for (const std::string& name : named) {
    if (known.empty() || std::find(known.begin(), known.end(), name) != known.end()) continue;
    return fmt::format("never_fits: there is no site '{}'; the configuration has {}", name,
                       fmt::join(known, ", "));
  }
  if (!needs.site.empty() && !may_run_at(needs, needs.site)) {
    return fmt::format("never_fits: it may run on the site {} only, and not there; leave one out",
                       needs.site);
  }
  const bool may_run_somewhere = std::any_of(
      known.begin(), known.end(), [&](const std::string& name) { return may_run_at(needs, name); });
  if (!known.empty() && !may_run_somewhere) {
    return fmt::format("never_fits: no site is left that may run it: the configuration has {}",
                       fmt::join(known, ", "));
  }
  if (auto unknown = gpus_nobody_has(needs)) return unknown;
  std::string closest;
  std::size_t nearest = SIZE_MAX;
  for (const SiteState& site : sites_.sites()) {
    for (const ShapeState& shape : site.shapes) {
      if (may_run_at(needs, site.site.name) && could_run(needs, shape.shape)) return std::nullopt;
      const Misfit misfit = compare(needs, site.site, shape.shape);
      if (misfit.distance >= nearest) continue;
      nearest = misfit.distance;
      closest = fmt::format("the closest shape is {} of {}, but the task asks for ",
                            shape.shape.name, site.site.name);
      closest += fmt::format("{}", fmt::join(misfit.lacks, ", and for "));
    }
  }
  if (closest.empty()) closest = no_shapes_at(needs.site, known);
  return fmt::format("never_fits: no site can ever run a task that needs {}: {}", show(needs),
                     closest);
}

}  // namespace hpcbatch

// Files that are staged in ahead of the turn of their tasks, and outputs that are fetched before
// the engine hears how an attempt ended.
#include "engine/engine.hpp"

#include <algorithm>
#include <cmath>

namespace hpcbatch {

// Which tasks' files are staged in at which site, and how far ahead of their turn: as much as keeps
// the site busy while more is on its way, and no more, because what was staged in there is of no use
// elsewhere.

namespace {

using namespace std::chrono_literals;

// Looked at no more often, and the more rarely the more there is to look at: what is there ahead
// lasts longer than that.
constexpr Duration kStageInEvery = 50ms;
constexpr Duration kStageInEveryPerArray = 20us;
// So much of a site's work is there ahead, within these bounds.
constexpr Duration kAhead = 20s;
constexpr std::uint64_t kLeastAhead = 256;
constexpr std::uint64_t kMostAhead = 8192;
constexpr std::uint64_t kMostAtOnce = 1024;
// A site that has staged in nothing for so long is not counted on.
constexpr Duration kSlow = 60s;

IndexSet first_of(const IndexSet& from, std::uint64_t most) {
  if (from.size() <= most) return from;
  IndexSet first;
  const auto ranges = from.ranges();
  for (std::size_t i = ranges.size(); i-- > 0 && most > 0;) {
    const std::uint64_t here =
        std::min<std::uint64_t>(most, std::uint64_t{ranges[i].last} - ranges[i].first + 1);
    first.add(IndexRange{ranges[i].first, static_cast<std::uint32_t>(ranges[i].first + here - 1)});
    most -= here;
  }
  return first;
}

/// Tasks of an array whose files are at a site or coming there.
IndexSet at_or_coming(const ArrayState& array, const std::string& site) {
  IndexSet all;
  for (const auto* by_site : {&array.files_at(), &array.files_staging()}) {
    if (const auto at = by_site->find(site); at != by_site->end()) all.add(at->second);
  }
  return all;
}

IndexSet waiting(const ReadyQueue& queue, const ArrayState& array) {
  IndexSet all;
  for (const QueuePlace& place : array.places()) all.add(queue.queued_or_parked(place));
  return all;
}

}  // namespace

bool Engine::is_slow(const std::string& site, Time now) const {
  const auto heard = stage_in_.heard.find(site);
  return heard != stage_in_.heard.end() && now - heard->second >= kSlow;
}

/// How many tasks of such needs the site's pilots have room for, or would have.
std::uint64_t Engine::room_at(const SiteState& site, const Needs& needs) const {
  std::uint64_t room = 0;
  for (const auto& [id, pilot] : pilots_.all()) {
    if (pilot.site == site.site.name && pilot.takes_tasks())
      room += PilotTable::how_often(needs, pilot);
  }
  if (room != 0) return room;
  for (const ShapeState& shape : site.shapes) {
    if (could_run(needs, shape.shape))
      room = std::max<std::uint64_t>(room, how_often(needs, usable(shape.shape)));
  }
  return room;
}

/// Whether the array's files may be staged in there now.
bool Engine::may_stage_in_to(const SiteState& site, const ArrayState& array, const Needs& needs,
                             Time now) const {
  if (!may_run_at(needs, site.site.name) || is_slow(site.site.name, now)) return false;
  if (array.rare) {
    const auto pause = array.rare->pauses.find(site.site.name);
    if (pause != array.rare->pauses.end() && pause->second.until > now) return false;
  }
  const bool has_pilots =
      std::any_of(pilots_.all().begin(), pilots_.all().end(), [&](const auto& entry) {
        return entry.second.site == site.site.name && entry.second.takes_tasks();
      });
  return std::any_of(site.shapes.begin(), site.shapes.end(), [&](const ShapeState& shape) {
    return could_run(needs, shape.shape) &&
           (has_pilots || (site.failed_polls <= 1 && shape.may_be_asked(now)));
  });
}

void Engine::stage_in_files(Time now) {
  struct Wants {
    const ArrayState* array;
    IndexSet waiting;
    std::uint64_t ahead{0};
  };
  std::vector<Wants> all;
  std::map<std::string, std::uint64_t> ahead;
  for (const ArrayId id : tasks_.arrays_with_files()) {
    Wants wants{tasks_.find(id), {}, 0};
    wants.waiting = waiting(tasks_.queue(), *wants.array);
    const bool of_each = wants.array->terms->needs.own_files;
    for (const std::string& site : wants.array->terms->needs.staged_to) {
      const std::uint64_t there =
          at_or_coming(*wants.array, site).intersection(wants.waiting).size();
      wants.ahead += there;
      // What counts is how many hold files there.
      ahead[site] += of_each ? there : std::min<std::uint64_t>(there, 1);
    }
    if (!wants.waiting.empty()) all.push_back(std::move(wants));
  }
  // Who has least ahead of its turn comes first, so that nobody's many keep another's few away.
  std::stable_sort(all.begin(), all.end(), [](const Wants& a, const Wants& b) {
    const auto mine = a.array->terms->priority;
    const auto other = b.array->terms->priority;
    return mine != other ? mine > other : a.ahead < b.ahead;
  });
  for (const Wants& wants : all) {
    const IndexSet cut = wants.waiting.intersection(wants.array->cut());
    IndexSet usual = wants.waiting;
    usual.remove(cut);
    stage_in_files_of(*wants.array, wants.array->terms->needs, usual, ahead, now);
    if (cut.empty()) continue;
    // Where their files are may have no shape that lasts long enough.
    for (const QueuePlace& place : wants.array->places()) {
      const IndexSet some = tasks_.queue().queued_or_parked(place).intersection(cut);
      if (some.empty()) continue;
      Needs needs = as_asked(wants.array->terms->needs);
      needs.time_request = tasks_.queue().get(place.in_class).needs.time;
      stage_in_files_of(*wants.array, needs, some, ahead, now);
    }
  }
}

/// Where files of `todo` may be staged in; those whose files are there or coming leave it.
/// `needs`: of each of these tasks.
std::vector<Engine::StageInTarget> Engine::stage_in_targets(const ArrayState& array,
                                                            const Needs& needs, IndexSet& todo,
                                                            Time now) {
  Duration mean = 1min;
  for (const QueuePlace& place : array.places()) {
    if (const auto known = tasks_.queue().get(place.in_class).mean_run) mean = *known;
  }
  std::vector<StageInTarget> targets;
  for (const std::string& name : needs.staged_to) {
    const SiteState* site = sites_.site(name);
    if (!site || !may_stage_in_to(*site, array, needs, now)) continue;
    IndexSet there = at_or_coming(array, name);
    if (!needs.own_files && !there.empty()) {
      // They are there or coming for the others, and so for all.
      tasks_.files_shared(array.id, name, todo);
      there.add(todo);
    }
    todo.remove(there);
    StageInTarget target{site, std::max<std::uint64_t>(1, room_at(*site, needs)), 0,
                         !there.empty()};
    const double rounds = static_cast<double>(kAhead.count()) /
                          static_cast<double>(std::max<std::int64_t>(1, mean.count()));
    target.most = std::clamp(
        static_cast<std::uint64_t>(std::min(1e9, static_cast<double>(target.room) * rounds)),
        std::max(kLeastAhead, 2 * target.room), std::max(kMostAhead, 2 * target.room));
    targets.push_back(target);
  }
  return targets;
}

// NOLINTNEXTLINE(readability-function-cognitive-complexity)
void Engine::stage_in_files_of(const ArrayState& array, const Needs& needs, const IndexSet& waiting,
                               std::map<std::string, std::uint64_t>& ahead, Time now) {
  if (waiting.empty()) return;
  using Target = StageInTarget;
  IndexSet todo = waiting;
  std::vector<Target> targets = stage_in_targets(array, needs, todo, now);
  std::uint64_t room_with_files = 0;
  for (const Target& target : targets) {
    if (target.has_files) room_with_files += target.room;
  }
  const auto bring = [&](Target& target, const IndexSet& indices) {
    const std::string& name = target.site->site.name;
    stage_in_.heard.try_emplace(name, now);
    tasks_.files_staging(array.id, name, indices, now);
    actions_.push_back(StageIn{name, array.id, indices, needs.own_files});
    ahead[name] += needs.own_files ? indices.size() : 1;
    target.has_files = true;
  };
  const auto best = [&](auto may) -> Target* {
    Target* found = nullptr;
    const auto load = [&](const Target& target) {
      return static_cast<double>(ahead[target.site->site.name]) / static_cast<double>(target.room);
    };
    for (Target& target : targets) {
      if (may(target) && (!found || load(target) < load(*found))) found = &target;
    }
    return found;
  };
  while (!todo.empty()) {
    Target* target = best([&](const Target& one) { return ahead[one.site->site.name] < one.most; });
    if (!target) break;
    const std::uint64_t free =
        target->most - std::min(target->most, ahead[target->site->site.name]);
    const IndexSet part = needs.own_files ? first_of(todo, std::min(kMostAtOnce, free)) : todo;
    bring(*target, part);
    todo.remove(part);
  }
  // What all of an array's tasks share goes to one more site when those that have it are full.
  if (needs.own_files || waiting.size() <= room_with_files) return;
  const bool any_coming = std::any_of(array.files_staging().begin(), array.files_staging().end(),
                                      [](const auto& entry) { return !entry.second.empty(); });
  if (any_coming) return;
  if (Target* next = best([](const Target& one) { return !one.has_files; })) bring(*next, waiting);
}

/// At most every so often.
void Engine::stage_in_if_due(bool changed, Time now) {
  if (tasks_.arrays_with_files().empty() || drain_.on) {
    stage_in_.due.reset();
    return;
  }
  if (!changed && !(stage_in_.due && *stage_in_.due <= now)) return;
  const auto arrays = static_cast<std::int64_t>(tasks_.arrays_with_files().size());
  const Time next =
      stage_in_.looked_at + std::max<Duration>(kStageInEvery, arrays * kStageInEveryPerArray);
  if (now < next) {
    stage_in_.due = next;
    return;
  }
  stage_in_.looked_at = now;
  stage_in_.due.reset();
  stage_in_files(now);
}

void Engine::handle(const StagedIn& event, Time now) {
  stage_in_.heard[event.site] = now;
  if (!tasks_.files_staged(event, now)) stage_in_.heard.erase(event.site);
  work_changed_ = true;
}

// Attempts that have ended at their pilots and whose outputs are fetched before the engine hears
// how: they hold no room there, and an end of their allocation does not touch them.

void Engine::outputs_come(Lease& lease, Time now) {
  lease.state = Lease::State::Publishing;
  if (!lease.outputs_come_since) lease.outputs_come_since = now;
  if (!lease.members.get().empty()) free_members(lease);
  pilots_.leave_room(lease);
  work_changed_ = true;
  // Whoever cancelled it had told the pilot, which has done with it.
  if (lease.cancelled)
    actions_.push_back(KillAttempt{lease.pilot, lease.attempt, Failure::Cancelled, false});
}

/// What the files of one that ran took to come and go.
void Engine::tell_staging(const Lease& lease, Outcome& outcome, Time now) {
  outcome.staged_in = tasks_.staged_in(lease.attempt.task, lease.held_by->site);
  // What is published where it runs is on no way.
  if (lease.outputs_come_since) outcome.staged_out = now - *lease.outputs_come_since;
}

void Engine::handle(const StageOutPending& event, Time now) {
  for (const AttemptId& attempt : event.attempts) {
    if (Lease* lease = pilots_.current(event.pilot, attempt)) outputs_come(*lease, now);
  }
}

void Engine::handle(const OutputsDelayed& event, Time) {
  const Lease* lease = pilots_.current(event.attempt);
  if (lease && lease->has_left) pilots_.delayed(*lease, event.why);
}

}  // namespace hpcbatch

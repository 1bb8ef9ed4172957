// Room that is kept for a task that others go before, because they are smaller: on one pilot, or for
// a task over several nodes on as many of one allocation.  Others may start there if they leave that
// room, or end before it can be there.
#include "engine/engine.hpp"

#include <algorithm>
#include <map>
#include <tuple>
#include <utility>

namespace hpcbatch {
namespace {

using namespace std::chrono_literals;

// So long others may go first before room is kept for a task.
constexpr Duration kPassedOver = 60s;
// The same of one over several nodes, which are hardly ever free together by chance.
constexpr Duration kNodesPassedOver = 5s;

/// So long a task of the class takes at most, by its limit or, with half as much for those that take
/// longer than others, by runs before.
std::optional<Duration> longest_run(const ResourceClass& its_class) {
  const std::optional<Duration>& limit = its_class.needs.time;
  if (!its_class.mean_run) return limit;
  const Duration most = *its_class.mean_run * 3 / 2;
  return limit ? std::min(*limit, most) : most;
}

void set_free(PilotState& pilot) {
  pilot.kept_for.reset();
  pilot.nothing_fits.reset();
}

}  // namespace

/// Notes for the heads of other classes that their turn was earlier, but the room was too small.
void Engine::note_passed_over(const PilotState& pilot, const QueuePlace& taken, Time now) {
  ReadyQueue& queue = tasks_.queue();
  queue.each_before(taken, [&](ClassId id) {
    ResourceClass& other = queue.get(id);
    if (id == taken.in_class || other.passed_over_since) return;
    if (!PilotTable::has_room(other, pilot, pilot.capacity, now)) return;
    // What needs several nodes at once is passed over also by what takes one that is free.
    if (other.needs.nodes == 1 && PilotTable::has_room(other, pilot, pilot.free, now)) return;
    const QueuePlace head = queue.head_of(id);
    if (head.priority > taken.priority ||
        (head.priority == taken.priority && head.array < taken.array)) {
      other.passed_over_since = now;
      other.passed_over_by = taken.array;
    }
  });
}

/// After a restart: of how long tasks were passed over nothing is known, but of some that younger
/// ones are with pilots.  They have waited for long enough.
void Engine::note_overtaken(Time now) {
  ReadyQueue& queue = tasks_.queue();
  for (const ClassId id : queue.waiting()) {
    const QueuePlace head = queue.head_of(id);
    const bool overtaken =
        std::any_of(pilots_.leases().begin(), pilots_.leases().end(), [&](const auto& entry) {
          const auto& [task, lease] = entry;
          return lease.in_class != id && task.array > head.array &&
                 tasks_.find(task.array)->terms->priority <= head.priority;
        });
    if (!overtaken) continue;
    queue.get(id).passed_over_since = now - kPassedOver;
    queue.get(id).passed_over_by = head.array;
  }
}

/// One of the class was taken and has its room.
void Engine::keep_no_more_for(ClassId id) {
  ReadyQueue& queue = tasks_.queue();
  ResourceClass& its_class = queue.get(id);
  if (!its_class.passed_over_since) return;
  for (auto& [pilot_id, pilot] : pilots_.all()) {
    if (pilot.kept_for == id) set_free(pilot);
  }
  // What comes next waits for its own turn; over several nodes only if the same did not go before it
  // too.
  if (its_class.needs.nodes == 1 || its_class.ready == 0 ||
      queue.head_of(id).array > its_class.passed_over_by)
    its_class.passed_over_since.reset();
}

/// Of pilots that are kept for a task over several nodes one that is no more sets the others free.
void Engine::keep_whole_sets() {
  std::map<ClassId, std::size_t> kept;
  for (const auto& [id, pilot] : pilots_.all()) {
    if (pilot.kept_for) ++kept[*pilot.kept_for];
  }
  for (auto& [id, pilot] : pilots_.all()) {
    if (pilot.kept_for && kept[*pilot.kept_for] < tasks_.queue().get(*pilot.kept_for).needs.nodes)
      set_free(pilot);
  }
}

/// Classes that were passed over for a while get room, in the order of their turns.
void Engine::keep_room(Time now) {
  ReadyQueue& queue = tasks_.queue();
  for (auto& [id, pilot] : pilots_.all()) {
    if (!pilot.kept_for) continue;
    const ResourceClass& kept = queue.get(*pilot.kept_for);
    const bool could =
        pilot.takes_tasks() && PilotTable::has_room(kept, pilot, pilot.capacity, now);
    if (kept.ready == 0 || !could) set_free(pilot);
  }
  keep_whole_sets();
  std::vector<QueuePlace> heads;
  bool any_wide = false;
  for (const ClassId id : queue.waiting()) {
    const ResourceClass& its_class = queue.get(id);
    const bool is_wide = its_class.needs.nodes > 1;
    any_wide = any_wide || is_wide;
    if (its_class.passed_over_since &&
        now - *its_class.passed_over_since >= (is_wide ? kNodesPassedOver : kPassedOver))
      heads.push_back(queue.head_of(id));
  }
  std::sort(heads.begin(), heads.end(),
            [&](const QueuePlace& a, const QueuePlace& b) { return queue.goes_before(a, b); });
  std::set<ClassId> younger;
  for (const QueuePlace& head : heads) younger.insert(head.in_class);
  for (const QueuePlace& head : heads) {
    younger.erase(head.in_class);
    keep_room_for(head.in_class, younger, now);
  }
  keep_whole_sets();
  // A pilot that takes tasks again, and has room as before, may be the one that was missing.  What
  // was learned of runs may let some start where room is kept.
  for (auto& [id, pilot] : pilots_.all()) {
    if (any_wide || pilot.kept_for) pilot.nothing_fits.reset();
  }
}

/// On as many pilots of one allocation as it needs: where its room comes first.  What is kept for
/// `younger` classes is no hindrance.
void Engine::keep_room_for(ClassId id, const std::set<ClassId>& younger, Time now) {
  struct Candidate {
    Time comes;
    Amount in_use;
    PilotState* pilot;
    auto order() const { return std::tuple(comes, in_use, pilot->id); }
  };
  const ResourceClass& its_class = tasks_.queue().get(id);
  const std::size_t count = its_class.needs.nodes;
  std::map<AllocationId, std::vector<Candidate>> candidates;
  std::size_t kept = 0;
  for (auto& [pilot_id, pilot] : pilots_.all()) {
    if (pilot.kept_for == id && ++kept == count) return;
    const bool is_free =
        !pilot.kept_for || *pilot.kept_for == id || younger.contains(*pilot.kept_for);
    if (!is_free || !pilot.takes_tasks() ||
        !PilotTable::has_room(its_class, pilot, pilot.capacity, now))
      continue;
    const Time comes = room_comes(pilot, its_class, now).value_or(Time::max());
    const Amount in_use{-pilot.free.get(kCpus).ticks};
    candidates[pilot_id.allocation].push_back({comes, in_use, &pilot});
  }
  const auto is_before = [](const Candidate& a, const Candidate& b) {
    return a.order() < b.order();
  };
  const std::vector<Candidate>* best = nullptr;
  for (auto& [allocation, pilots] : candidates) {
    if (pilots.size() < count) continue;
    std::sort(pilots.begin(), pilots.end(), is_before);
    pilots.resize(count);
    if (!best || is_before(pilots.back(), best->back())) best = &pilots;
  }
  if (!best) return;
  for (const Candidate& one : *best) {
    one.pilot->kept_for = id;
    one.pilot->kept_since = now;
    one.pilot->kept_until.reset();
    one.pilot->nothing_fits.reset();
  }
}

/// By when kept room is expected, after something has changed there.  It may come sooner than was
/// thought, but what starts meanwhile never puts it off.
void Engine::foresee_kept_room(Time now) {
  std::map<ClassId, std::optional<Time>> until;
  for (const auto& [id, pilot] : pilots_.all()) {
    if (pilot.kept_for && pilot.nothing_fits != tasks_.queue().news())
      until.try_emplace(*pilot.kept_for, now);
  }
  if (until.empty()) return;
  for (const auto& [id, pilot] : pilots_.all()) {
    const auto at = pilot.kept_for ? until.find(*pilot.kept_for) : until.end();
    if (at == until.end() || !at->second) continue;
    const auto comes = room_comes(pilot, tasks_.queue().get(at->first), now);
    at->second = comes ? std::optional(std::max(*comes, *at->second)) : std::nullopt;
  }
  for (auto& [id, pilot] : pilots_.all()) {
    const auto at = pilot.kept_for ? until.find(*pilot.kept_for) : until.end();
    if (at != until.end() && at->second)
      pilot.kept_until = std::min(pilot.kept_until.value_or(*at->second), *at->second);
  }
}

/// When a pilot has room for a task of the class if nothing more starts there; nothing where that is
/// not known of all that runs there.
std::optional<Time> Engine::room_comes(const PilotState& pilot, const ResourceClass& its_class,
                                       Time now) const {
  Resources free = pilot.free;
  if (PilotTable::has_room(its_class, pilot, free, now)) return now;
  std::vector<std::pair<Time, const Resources*>> ends;
  const auto add = [&](const Lease& lease, const Resources& holds) {
    const ResourceClass& runs = tasks_.queue().get(lease.in_class);
    const std::optional<Duration> run = runs.mean_run ? runs.mean_run : runs.needs.time;
    if (run) ends.emplace_back(lease.started.value_or(lease.since) + *run, &holds);
  };
  for (const TaskId task : pilot.in_room) {
    const Lease& lease = *pilots_.lease(task);
    add(lease, lease.granted);
  }
  for (const auto& [task, holds] : pilot.claims) add(*pilots_.lease(task), holds);
  std::sort(ends.begin(), ends.end());
  for (const auto& [end, holds] : ends) {
    free.add(*holds);
    if (PilotTable::has_room(its_class, pilot, free, now)) return std::max(end, now);
  }
  return std::nullopt;
}

/// Whether a task that may start on the pilot takes nothing from what is kept there for others.
bool Engine::leaves_kept_room(const PilotState& pilot, ClassId id, Time now) const {
  if (!pilot.kept_for || *pilot.kept_for == id) return true;
  const ResourceClass& its_class = tasks_.queue().get(id);
  if (const auto run = longest_run(its_class);
      run && pilot.kept_until && now + *run <= *pilot.kept_until)
    return true;
  const auto grant = grant_for(pilot, id, pilot.free, true);
  if (!grant) return false;
  Resources left = pilot.free;
  left.subtract(grant->amounts);
  return PilotTable::has_room(tasks_.queue().get(*pilot.kept_for), pilot, left, now);
}

}  // namespace hpcbatch

// On which device a task runs that leaves that open: kinds of GPU, and cpus in place of one.
#include "engine/engine.hpp"

#include "model/site.hpp"

#include <algorithm>

namespace hpcbatch {
namespace {

using namespace std::chrono_literals;

constexpr Duration kWeighedEvery = 1s;
// What is new is weighed at once, where that costs little.
constexpr Duration kNewsWeighedEvery = 100ms;
constexpr std::size_t kFewClasses = 20;
// Of more than so many classes the rest takes what comes.
constexpr std::size_t kMostWeighed = 200;
// Of a run about which nothing is known.
constexpr double kRunNotKnown = 60;

double in_seconds(Duration duration) {
  return std::chrono::duration<double>(duration).count();
}

/// Units of its device that somebody has who was granted this.
double units_of(const Resources& granted, std::string_view device) {
  return granted.get(device).value();
}

/// What a pilot has that others do not: those that are alike are looked at once.
bool is_alike(const PilotState& a, const PilotState& b) {
  return a.site == b.site && a.tags == b.tags && a.made_for == b.made_for &&
         a.capacity == b.capacity && a.end == b.end;
}

/// Each way to run it in such a room, and on each kind of GPU that it would take, the best first as
/// far as its user said; of kinds that with most left.
template <class Look>
void each_grant(const Needs& needs, const PilotState& pilot, const Resources& room, Look look) {
  for (std::size_t way = 0; way < count_of_ways(needs); ++way) {
    const Resources demand = PilotTable::share(way_of(needs, way), pilot);
    if (!fits(demand, room)) continue;
    const Resources first = resolve(demand, room);
    if (!look(first, way)) return;
    const auto& entries = demand.entries();
    const auto open = std::find_if(entries.begin(), entries.end(), [](const auto& entry) {
      return names_several_gpus(entry.first);
    });
    if (open == entries.end()) continue;
    for (const auto& [kind, there] : room.entries()) {
      if (!takes_gpu(open->first, kind) || kind == device_of(first)) continue;
      Resources other = demand;
      other.set(open->first, {});
      other.set(kind, other.get(kind) + open->second);
      if (fits(other, room) && !look(other, way)) return;
    }
  }
}

}  // namespace

/// What a task of the class would be granted in such a room; nothing where it is left to another
/// pilot.
std::optional<Engine::Grant> Engine::grant_for(const PilotState& pilot, ClassId id,
                                               const Resources& room, bool goes_there) const {
  // What waits there, and whose room was kept, does not wait for another.
  goes_there = goes_there || &room == &pilot.capacity || pilot.kept_for == id;
  std::optional<Grant> best;
  each_grant(tasks_.queue().get(id).needs, pilot, room,
             [&](const Resources& granted, std::size_t way) {
               const auto place = broker_.place(static_cast<std::uint32_t>(id), device_of(granted));
               if ((goes_there || !place.is_left) && (!best || place.rank < best->rank))
                 best = Grant{granted, way, place.rank};
               return broker_.weighs();
             });
  return best;
}

/// The seconds that a task of the class is expected to take on a device.
double Engine::expected_on(const ResourceClass& its_class, std::string_view device) const {
  const double otherwise = its_class.mean_run ? in_seconds(*its_class.mean_run) : kRunNotKnown;
  return broker_.speeds().seconds(its_class.needs.device->kind, device).value_or(otherwise);
}

namespace {

broker::Device& device_named(std::vector<broker::Device>& devices, std::string_view name) {
  const auto at = std::find_if(devices.begin(), devices.end(),
                               [&](const broker::Device& one) { return one.name == name; });
  if (at != devices.end()) return *at;
  return devices.emplace_back(broker::Device{std::string(name), 0, 0});
}

}  // namespace

/// The devices that pilots have now.
std::vector<broker::Device> Engine::devices(broker::Running& running, Time now) const {
  std::vector<broker::Device> all;
  for (const auto& [id, pilot] : pilots_.all()) {
    if (!pilot.takes_tasks()) continue;
    for (const auto& [name, amount] : pilot.capacity.entries()) {
      if (name == kCpus || name.starts_with(kGpuPrefix))
        device_named(all, name).units += amount.value();
    }
    for (const TaskId task : pilot.in_room) {
      const Lease& lease = *pilots_.lease(task);
      const ResourceClass& its_class = tasks_.queue().get(lease.in_class);
      const std::string_view device = device_of(lease.granted);
      if (!its_class.needs.device->kind.empty())
        ++running[{its_class.needs.device->kind, std::string(device)}];
      const double run = expected_on(its_class, device);
      const double elapsed = lease.started ? in_seconds(now - *lease.started) : 0;
      // What has run for longer than expected is taken to be in the middle of its run.
      const double left = elapsed < run ? run - elapsed : elapsed;
      device_named(all, device).busy += left * units_of(lease.granted, device);
    }
  }
  return all;
}

/// The ways to run a class on the pilots that are there, one for each device.
std::vector<broker::Way> Engine::ways_now(const ResourceClass& its_class,
                                          const std::vector<const PilotState*>& pilots,
                                          Time now) const {
  std::vector<broker::Way> ways;
  for (const PilotState* pilot : pilots) {
    if (!PilotTable::has_room(its_class, *pilot, pilot->capacity, now)) continue;
    each_grant(
        its_class.needs, *pilot, pilot->capacity, [&](const Resources& granted, std::size_t order) {
          const std::string_view device = device_of(granted);
          const bool is_known = std::any_of(ways.begin(), ways.end(), [&](const broker::Way& way) {
            return way.device == device;
          });
          if (!is_known) ways.push_back({std::string(device), units_of(granted, device), order});
          return true;
        });
  }
  return ways;
}

void Engine::weigh_devices(Time now) {
  const ReadyQueue& queue = tasks_.queue();
  if (queue.waiting_open().empty()) return broker_.rest();
  const bool has_news = weighed_.news != queue.news();
  const bool is_due =
      queue.waiting().size() <= kFewClasses || now >= weighed_.at + kNewsWeighedEvery;
  if (!(has_news && is_due) && now < weighed_.at + kWeighedEvery) return;
  weighed_ = {queue.news(), now};
  const bool are_cpus_open =
      std::any_of(queue.waiting_open().begin(), queue.waiting_open().end(),
                  [&](ClassId id) { return !queue.get(id).needs.device->instead.empty(); });
  broker::Running running;
  const std::vector<broker::Device> there = devices(running, now);
  std::vector<const PilotState*> pilots;
  for (const auto& entry : pilots_.all()) {
    const PilotState& pilot = entry.second;
    if (!pilot.takes_tasks()) continue;
    const bool is_new = std::none_of(pilots.begin(), pilots.end(), [&](const PilotState* other) {
      return is_alike(*other, pilot);
    });
    if (is_new) pilots.push_back(&pilot);
  }
  std::vector<broker::Waiting> waiting;
  for (const ClassId id : queue.waiting()) {
    const ResourceClass& its_class = queue.get(id);
    // What has no choice and takes nothing of what others choose among does not matter.
    if (its_class.needs.device->kind.empty() && !are_cpus_open) continue;
    if (waiting.size() == kMostWeighed) break;
    broker::Waiting one{.id = static_cast<std::uint32_t>(id),
                        .kind = its_class.needs.device->kind,
                        .tasks = static_cast<double>(its_class.ready),
                        .ways = ways_now(its_class, pilots, now)};
    if (its_class.mean_run) one.seconds = in_seconds(*its_class.mean_run);
    if (!one.ways.empty()) waiting.push_back(std::move(one));
  }
  broker_.weigh(there, waiting, running);
}

/// How long tasks of its kind take on each device of the shapes that could run it; nothing where
/// the kind has run nowhere yet.
std::vector<std::pair<std::string, Duration>> Engine::known_runs(const Needs& needs) const {
  std::vector<std::pair<std::string, Duration>> known;
  for (const SiteState& site : sites_.sites()) {
    for (const ShapeState& shape : site.shapes) {
      const auto device = device_in(needs, usable(shape.shape));
      if (!device) continue;
      const bool is_there = std::any_of(known.begin(), known.end(),
                                        [&](const auto& one) { return one.first == *device; });
      if (is_there) continue;
      if (const auto seconds = broker_.speeds().seconds(needs.device->kind, *device))
        known.emplace_back(
            *device, std::chrono::duration_cast<Duration>(std::chrono::duration<double>(*seconds)));
    }
  }
  return known;
}

/// By the end of a lease: how long its kind takes on the device that it had.
void Engine::learn_speed(const Lease& lease, Outcome& outcome) {
  const Needs& needs = tasks_.find(lease.attempt.task.array)->terms->needs;
  const std::string& kind = needs.device->kind;
  if (kind.empty() || lease.guessed) return;
  outcome.device = device_of(lease.granted);
  // Packed with others it may be slower.
  if (needs.guess && needs.guess->gpus && !tasks_.guess_failed(lease.attempt.task))
    outcome.device = packed_on(outcome.device, units_of(lease.granted, outcome.device));
  if (outcome.failure != Failure::Ok || !outcome.started || outcome.ended <= *outcome.started)
    return;
  broker_.speeds().learn(kind, outcome.device, outcome.ended - *outcome.started);
}

}  // namespace hpcbatch

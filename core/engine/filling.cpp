// Which task goes to which pilot: whatever fits its room and its remaining walltime, in the order
// of turns, with as much waiting at the pilot as keeps it busy over the link's delay and no more.
#include "engine/engine.hpp"
#include "model/check.hpp"
#include "planted/planted.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <queue>

namespace hpcbatch {
namespace {

using namespace std::chrono_literals;

// What waits at a pilot is worth this much of its time, far below what a user would notice, and as
// much as its link needs: a result comes half a round trip late, what is leased for it another
// half, and that at the latest when a quarter of the backlog is used up.  What is over makes good
// what a lost packet delays.
constexpr Duration kBacklogTime = 250ms;
constexpr int kBacklogRoundTrips = 3;
constexpr Duration kLongestBacklogTime = 10s;
constexpr std::uint64_t kLargestBacklog = 16'384;
// A pilot with nothing to give back does not answer.  Others do within this and a round trip.
constexpr Duration kRecallAnswered = 2s;
// A service takes a second or two to start.  So long its tasks wait for a pilot that has it.
constexpr Duration kLeftToWarm = 500ms;
// What is left to another device is looked at again so soon.
constexpr Duration kLookAgain = 1s;

}  // namespace

/// How many tasks of a class may wait at the pilot beyond what runs.
std::uint64_t Engine::backlog_for(const PilotState& pilot, const ResourceClass& wanted) const {
  if (!wanted.mean_run) return 0;
  const Duration time =
      std::min(kLongestBacklogTime, kBacklogTime + kBacklogRoundTrips * pilot.round_trip);
  const double rounds = static_cast<double>(time.count()) /
                        static_cast<double>(std::max<std::int64_t>(1, wanted.mean_run->count()));
  const auto worth = [&](std::uint64_t side_by_side) {
    return std::min(kLargestBacklog,
                    static_cast<std::uint64_t>(static_cast<double>(side_by_side) * rounds));
  };
  // Most tasks are long: then memory need not be looked at.
  if (worth(how_often(wanted.needs, pilot.capacity)) == 0) return 0;
  return worth(PilotTable::how_often(wanted.needs, pilot));
}

/// Whether a class is not for this pilot yet, because one that could run it has its service.
bool Engine::is_left_to_warm(const PilotState& cold, ClassId id, Time now) const {
  const ResourceClass& its_class = tasks_.queue().get(id);
  const std::string& service = its_class.needs.service;
  if (service.empty() || cold.warm.contains(service) || cold.classes.contains(id)) return false;
  if (cold.kept_for == id || its_class.not_left_until.value_or(now) > now) return false;
  const bool has_waited = its_class.left_since && now - *its_class.left_since >= kLeftToWarm;
  return std::any_of(filling_.warm.begin(), filling_.warm.end(), [&](const PilotState* pilot) {
    // One that would not take it is no reason to leave it.
    return pilot->warm.contains(service) && (!pilot->kept_for || *pilot->kept_for == id) &&
           !(pilot->braked && !pilot->leases.empty()) && may_be_tried(its_class, *pilot, now) &&
           PilotTable::has_room(its_class, *pilot, has_waited ? pilot->free : pilot->capacity, now);
  });
}

/// Whether the pilot alone has room for one of the class that it may take.
bool Engine::could_start(const PilotState& pilot, ClassId id, Time now) const {
  const ResourceClass& its_class = tasks_.queue().get(id);
  return !waits_for_service(pilot, id) && PilotTable::has_room(its_class, pilot, pilot.free, now) &&
         leaves_kept_room(pilot, id, now) && may_be_tried(its_class, pilot, now);
}

/// Whose turn it is at a pilot.
// NOLINTNEXTLINE(readability-function-cognitive-complexity)
Engine::Turn Engine::next_for(const PilotState& pilot, Into where, Time now) const {
  const ReadyQueue& queue = tasks_.queue();
  Turn turn;
  if (where == Into::Room) {
    const auto may = [&](ClassId id) {
      if (!could_start(pilot, id, now)) return false;
      if (queue.get(id).needs.nodes > 1 && !members_for(pilot, id, now)) return false;
      const bool is_left = is_left_to_warm(pilot, id, now);
      if (is_left) turn.left_to_warm.push_back(id);
      return !is_left;
    };
    if (broker_.weighs()) {
      turn.place = queue.best_by_rank([&](ClassId id) -> std::optional<double> {
        if (!may(id)) return std::nullopt;
        const std::optional<Grant> grant = grant_for(pilot, id, pilot.free);
        if (!grant) turn.is_left = true;
        return grant ? std::optional(grant->rank) : std::nullopt;
      });
    } else {
      turn.place = queue.best(may);
    }
    // Nothing of lower priority overtakes what is left: to start its service costs less.
    for (const ClassId id : turn.left_to_warm) {
      const QueuePlace head = queue.head_of(id);
      if (turn.place && head.priority > turn.place->priority) turn.place = head;
    }
    return turn;
  }
  const auto is_wanted = [&](const ResourceClass& its_class) {
    const std::uint64_t most = backlog_for(pilot, its_class);
    // Many at a time cost less than one by one.
    return pilot.backlog.size() < most &&
           (where == Into::Backlog || pilot.backlog.size() <= most - most / 4);
  };
  for (const auto& [id, share] : pilot.classes) {
    // Only behind others of its class: the room that one of them leaves is enough for it, and soon
    // there.
    const ResourceClass& its_class = queue.get(id);
    if (share.with_room == 0 || its_class.ready == 0 || pilot.kept_for.value_or(id) != id) continue;
    if (its_class.needs.nodes > 1) continue;
    if (waits_for_service(pilot, id)) continue;
    if (its_class.apart.suspect != 0 || pilot.on_trial) continue;
    if (!is_wanted(its_class)) continue;
    if (!PilotTable::has_room(its_class, pilot, pilot.capacity, now)) continue;
    const QueuePlace head = queue.head_of(id);
    if (!turn.place || queue.goes_before(head, *turn.place)) turn.place = head;
  }
  return turn;
}

/// What its pilot is told.  Limits are exact per task: the class is only a little wider.
SendLeases::Lease Engine::lease_of(const AttemptId& attempt, const Needs& needs, const Grant& grant,
                                   const PilotState& pilot) const {
  SendLeases::Lease lease{.attempt = attempt, .granted = grant.amounts};
  const bool is_guessed = needs.guess && needs.guess->memory;
  const Amount memory =
      is_guessed ? needs.guess->memory_asked : way_of(needs, grant.way).get(kMemory);
  lease.memory_is_limit = memory != Amount{};
  if (is_guessed && !tasks_.guess_failed(attempt.task))
    lease.memory = PilotTable::share(as_asked(needs).amounts, pilot).get(kMemory);
  else if (lease.memory_is_limit)
    lease.granted.set(kMemory, memory);
  if (!needs.guess || !needs.guess->time) lease.time_limit = needs.time;
  return lease;
}

std::optional<SendLeases::Lease> Engine::lease_next(PilotState& pilot, Into where, Time now) {
  const bool into_backlog = where != Into::Room;
  const auto [place, left_to_warm, is_left] = next_for(pilot, where, now);
  for (const ClassId id : left_to_warm) {
    auto& since = tasks_.queue().get(id).left_since;
    if (!since) since = now;
    // One that should have been taken by then is looked at with all others.
    const Time due = *since + kLeftToWarm;
    if (due > now) filling_.cold_due = std::min(filling_.cold_due.value_or(due), due);
  }
  // Where it was left to has its own ends, and others may come there first.
  if (is_left)
    filling_.cold_due = std::min(filling_.cold_due.value_or(now + kLookAgain), now + kLookAgain);
  if (!place) {
    if (where == Into::Room && left_to_warm.empty() && !is_left)
      pilot.nothing_fits = tasks_.queue().news();
    return std::nullopt;
  }
  // While its room is still kept for it.
  const std::optional<Grant> grant =
      grant_for(pilot, place->in_class, into_backlog ? pilot.capacity : pilot.free);
  HPCBATCH_CHECK(grant);
  if (where != Into::Backlog) note_passed_over(pilot, *place, now);
  const ResourceClass& its_class = tasks_.queue().get(place->in_class);
  std::optional<std::vector<PilotState*>> members;
  if (its_class.needs.nodes > 1) members = members_for(pilot, place->in_class, now);

  const TakenTask taken = tasks_.take(*place);
  keep_no_more_for(place->in_class);
  const ArrayState* array = tasks_.find(taken.task.array);
  HPCBATCH_CHECK(array);
  const AttemptId attempt{taken.task, taken.attempt,
                          epoch_of_next(pilot.id, taken.task, taken.attempt)};
  const Resources& granted = grant->amounts;
  broker_.taken(static_cast<std::uint32_t>(place->in_class), device_of(granted));
  pilots_.grant({.attempt = attempt,
                 .pilot = pilot.id,
                 .in_class = place->in_class,
                 .granted = granted,
                 .counted = !into_backlog,
                 .suspect = its_class.apart.suspect != 0,
                 .since = now});
  if (its_class.apart.suspect != 0) pilot.on_trial = any_on_trial_ = true;
  const auto grown = tasks_.grown_needs(attempt.task);
  SendLeases::Lease lease = lease_of(attempt, grown ? *grown : array->terms->needs, *grant, pilot);
  lease.runs_once = array->terms->course->no_requeue;
  if (members) lease.nodes = claim_members(attempt.task, *members);
  return lease;
}

/// Nothing that waits fits what the pilot has left: known since the last look, where nothing new
/// waits and the pilot's room has neither grown nor stopped to be kept.
bool Engine::is_known_to_be_full(const PilotState& pilot, Time now) const {
  // Every task needs a part of a cpu.
  if (pilot.free.get(kCpus).ticks <= 0) return true;
  if (pilot.nothing_fits != tasks_.queue().news()) return false;
  if (walks_invariants) {
    // What needs other pilots too starts from the one whose room has grown; what may start where
    // room is kept is looked for once a second.
    const auto place = next_for(pilot, Into::Room, now).place;
    HPCBATCH_CHECK(!place || pilot.kept_for || tasks_.queue().get(place->in_class).needs.nodes > 1);
  }
  return true;
}

void Engine::fill_pilots(Time now) {
  filling_.recall_due.reset();
  filling_.cold_due.reset();
  if (drain_.on) return;
  watch_nodes(now);
  weigh_devices(now);
  filling_.warm.clear();
  for (const auto& [id, pilot] : pilots_.all()) {
    if (!pilot.warm.empty() && pilot.takes_tasks()) filling_.warm.push_back(&pilot);
  }
  if (tasks_.queue().size() != 0) {
    // First everybody's free room, then what waits there, least first: nobody hoards while another
    // idles.
    foresee_kept_room(now);
    std::vector<PilotToFill> filled = pilots_to_fill();
    fill_rooms(filled, now);
    fill_backlogs(filled, now);
    for (PilotToFill& one : filled) send_leases(std::move(one));
  }
  call_back_for_idle(now);
}

/// In the order of their ids, but those with services last: what needs none goes to the others.
std::vector<Engine::PilotToFill> Engine::pilots_to_fill() {
  std::vector<PilotToFill> all;
  for (auto& [id, pilot] : pilots_.all()) {
    if (pilot.takes_tasks()) all.push_back({&pilot, {}});
  }
  std::stable_partition(all.begin(), all.end(),
                        [](const PilotToFill& one) { return one.pilot->warm.empty(); });
  return all;
}

void Engine::fill_rooms(std::vector<PilotToFill>& filled, Time now) {
  for (auto& [pilot, leases] : filled) {
    while (!is_known_to_be_full(*pilot, now)) {
      auto lease = lease_next(*pilot, Into::Room, now);
      if (!lease) break;
      leases.push_back(std::move(*lease));
      if (pilot->braked) break;
    }
  }
}

void Engine::fill_backlogs(std::vector<PilotToFill>& filled, Time now) {
  struct Busy {
    std::size_t at;  // in `filled`
    Into where;
  };
  const auto waits_more = [&](const Busy& a, const Busy& b) {
    const std::size_t mine = filled[a.at].pilot->backlog.size();
    const std::size_t other = filled[b.at].pilot->backlog.size();
    return mine != other ? mine > other : a.at > b.at;
  };
  std::priority_queue<Busy, std::vector<Busy>, decltype(waits_more)> busy(waits_more);
  for (std::size_t at = 0; at < filled.size() && tasks_.queue().size() != 0; ++at) {
    const PilotState& pilot = *filled[at].pilot;
    if (!pilot.leases.empty() && !pilot.braked) busy.push({at, Into::LowBacklog});
  }
  while (!busy.empty()) {
    const auto [at, where] = busy.top();
    busy.pop();
    auto& [pilot, leases] = filled[at];
    auto lease = lease_next(*pilot, where, now);
    // Neighbours stay together, which costs less everywhere; nobody gets far ahead of the others.
    for (std::size_t more = pilot->backlog.size() / 8; lease && more > 0; --more) {
      leases.push_back(std::move(*lease));
      lease = lease_next(*pilot, Into::Backlog, now);
    }
    if (!lease) continue;
    leases.push_back(std::move(*lease));
    busy.push({at, Into::Backlog});
  }
}

void Engine::send_leases(PilotToFill filled) {
  if (filled.leases.empty()) return;
  SaveLeases save{filled.pilot->id, {}};
  save.attempts.reserve(filled.leases.size());
  std::vector<SendLeases> claims;
  for (const SendLeases::Lease& lease : filled.leases) {
    if (!lease.nodes) {
      save.attempts.push_back(lease.attempt);
      continue;
    }
    const Lease& its = *pilots_.lease(lease.attempt.task);
    actions_.push_back(SaveLeases{filled.pilot->id, {lease.attempt}, its.members.get()});
    for (const std::uint32_t rank : its.members.get())
      claims.push_back(claim_of(its, *pilots_.find(its.member(rank)), lease));
  }
  if (!save.attempts.empty()) actions_.push_back(std::move(save));
  for (SendLeases& claim : claims) actions_.push_back(std::move(claim));
  actions_.push_back(SendLeases{filled.pilot->id, std::move(filled.leases)});
}

/// A pilot has nothing to do, and at another leases wait for room that it could start.
// NOLINTNEXTLINE(readability-function-cognitive-complexity)
void Engine::call_back_for_idle(Time now) {
  if (pilots_.backlogs() == 0) return;
  std::vector<PilotState*> fullest_first;
  for (auto& [id, pilot] : pilots_.all()) {
    if (pilot.connected && !pilot.backlog.empty()) fullest_first.push_back(&pilot);
  }
  std::stable_sort(fullest_first.begin(), fullest_first.end(),
                   [](const PilotState* a, const PilotState* b) {
                     return a->backlog.size() > b->backlog.size();
                   });
  for (const auto& entry_of_idle : pilots_.all()) {
    const PilotState& idle = entry_of_idle.second;
    // Room that nobody uses, be it a part of the pilot's only.
    const bool is_alone_there = idle.braked || idle.kept_for || idle.on_trial;
    if (!idle.takes_tasks() || !idle.backlog.empty() || (is_alone_there && !idle.is_empty()))
      continue;
    if (idle.free.get(kCpus).ticks <= 0) continue;
    std::optional<ClassId> what;
    const auto fullest =
        std::find_if(fullest_first.begin(), fullest_first.end(), [&](const PilotState* pilot) {
          const Time soon = pilots_.lease(pilot->backlog.front())->since + kLeftToWarm;
          return std::any_of(pilot->classes.begin(), pilot->classes.end(), [&](const auto& entry) {
            const auto& [id, share] = entry;
            if (share.waiting == 0 || !could_start(idle, id, now)) return false;
            if (broker_.weighs() && !grant_for(idle, id, idle.free)) return false;
            if (soon > now && is_left_to_warm(idle, id, now)) {
              filling_.recall_due = std::min(filling_.recall_due.value_or(soon), soon);
              return false;
            }
            what = id;
            return true;
          });
        });
    if (fullest == fullest_first.end()) continue;
    PilotState& pilot = **fullest;
    // What comes back may go where it was: others are in its class too, and where devices are
    // weighed, what waits without a lease counts.  It would do so again: ever less often.
    const Duration answered = kRecallAnswered + pilot.round_trip;
    const bool was_in_vain = !pilot.recalled && pilot.recalled_of == pilot.backlog.size();
    const Duration pause = was_in_vain ? pilot.recall_pause : kBacklogTime;
    const Time next = pilot.recalled_at + (pilot.recalled ? answered : pause);
    if (next > now) {
      filling_.recall_due = filling_.recall_due ? std::min(*filling_.recall_due, next) : next;
      continue;
    }
    pilot.recalled = true;
    pilot.recalled_at = now;
    pilot.recalled_of = pilot.backlog.size();
    pilot.recall_pause = was_in_vain ? std::min(kLongestBacklogTime, 2 * pause) : kBacklogTime;
    tasks_.queue().get(*what).not_left_until = now + answered;
    actions_.push_back(
        RecallLeases{pilot.id, static_cast<std::uint32_t>((pilot.backlog.size() + 1) / 2)});
  }
}

// Services of pilots: which live, which are about to, and for which tasks they will be wanted.

void Engine::handle(const ServicesWarm& event, Time /*now*/) {
  PilotState* pilot = pilots_.find(event.pilot);
  if (!pilot) return;
  pilot->warm = {event.services.begin(), event.services.end()};
  pilot->starting = {event.starting.begin(), event.starting.end()};
  // What waited for one of them may fit now.
  pilot->nothing_fits.reset();
}

/// Its tasks wait without a lease: what it has room for, others may have meanwhile.
bool Engine::waits_for_service(const PilotState& pilot, ClassId id) const {
  return !pilot.starting.empty() && pilot.starting.contains(tasks_.queue().get(id).needs.service);
}

std::optional<ArrayId> Engine::served_after(ArrayId before) const {
  const ArrayState* first = tasks_.find(before);
  const std::vector<ArrayId>* dependants = tasks_.dependants(before);
  if (!first || !dependants) return std::nullopt;
  const bool is_alone = first->tasks.all().size() == 1;
  for (const ArrayId id : *dependants) {
    const ArrayState* next = tasks_.find(id);
    if (!next || next->terms->needs.service.empty() || next->tasks.blocked().empty()) continue;
    // One task behind thousands is not worth a service at each of their pilots.
    const auto [open, end] = next->open().equal_range(before);
    const bool is_in_pairs = std::any_of(open, end, [](const auto& entry) {
      return entry.second.on.kind == Dependency::Kind::EachSuccess;
    });
    if (is_alone || is_in_pairs) return id;
  }
  return std::nullopt;
}

}  // namespace hpcbatch

#include "engine/pilot_table.hpp"

#include "model/check.hpp"
#include "model/site.hpp"
#include "planted/planted.hpp"

#include <algorithm>

namespace hpcbatch {

PilotState* PilotTable::find(const PilotId& id) {
  const auto at = pilots_.find(id);
  return at == pilots_.end() ? nullptr : &at->second;
}

const PilotState* PilotTable::find(const PilotId& id) const {
  const auto at = pilots_.find(id);
  return at == pilots_.end() ? nullptr : &at->second;
}

Lease* PilotTable::lease(TaskId task) {
  const auto at = leases_.find(task);
  return at == leases_.end() ? nullptr : &at->second;
}

const Lease* PilotTable::lease(TaskId task) const {
  const auto at = leases_.find(task);
  return at == leases_.end() ? nullptr : &at->second;
}

Lease* PilotTable::current(const AttemptId& attempt) {
  Lease* found = lease(attempt.task);
  return found && (found->attempt == attempt || HPCBATCH_PLANTED(epoch_not_checked)) ? found
                                                                                     : nullptr;
}

Lease* PilotTable::current(const PilotId& pilot, const AttemptId& attempt) {
  Lease* found = current(attempt);
  return found && found->pilot == pilot ? found : nullptr;
}

Lease* PilotTable::current(const AllocationId& allocation, const AttemptId& attempt) {
  Lease* found = current(attempt);
  return found && found->pilot.allocation == allocation ? found : nullptr;
}

bool PilotTable::was_given_back(TaskId task, const PilotId& pilot) const {
  const auto at = given_back_.find(task);
  return at != given_back_.end() && at->second.contains(pilot);
}

/// Memory that a task did not ask for; nothing where it did, or where the pilot counts none.
Amount PilotTable::memory_share(const Resources& amounts, const PilotState& pilot) {
  const Amount memory = pilot.capacity.get(kMemory);
  const Amount cpus = pilot.capacity.get(kCpus);
  if (amounts.get(kMemory) != Amount{} || memory == Amount{} || cpus.ticks <= 0) return {};
  const double part = std::min(1.0, amounts.get(kCpus).value() / cpus.value());
  return Amount{static_cast<std::int64_t>(part * static_cast<double>(memory.ticks))};
}

Resources PilotTable::share(Resources amounts, const PilotState& pilot) {
  if (const Amount memory = memory_share(amounts, pilot); memory != Amount{})
    amounts.set(kMemory, memory);
  return amounts;
}

std::uint64_t PilotTable::how_often(const Needs& needs, const PilotState& pilot) {
  std::uint64_t most = 0;
  for (std::size_t way = 0; way < count_of_ways(needs); ++way) {
    most = std::max(most, hpcbatch::how_often(share(way_of(needs, way), pilot), pilot.capacity));
  }
  return most;
}

bool PilotTable::has_room(const Needs& needs, const PilotState& pilot, const Resources& room,
                          Time now) {
  if (!may_run_at(needs, pilot.site)) return false;
  if (pilot.end && now + needs.time.value_or(Duration{1}) > *pilot.end &&
      !HPCBATCH_PLANTED(end_of_pilot_overlooked))
    return false;
  if (!has_tags(pilot.tags, pilot.made_for, needs)) return false;
  const Amount memory = std::max(Amount{}, room.get(kMemory));
  for (std::size_t way = 0; way < count_of_ways(needs); ++way) {
    const Resources& amounts = way_of(needs, way);
    if (fits(amounts, room) && memory_share(amounts, pilot) <= memory) return true;
  }
  return false;
}

bool PilotTable::has_room(const ResourceClass& its_class, const PilotState& pilot,
                          const Resources& room, Time now) {
  if (its_class.keeps_away && pilot.is_at(its_class.apart.not_at)) return false;
  return has_room(its_class.needs, pilot, room, now);
}

void PilotTable::take_room(PilotState& pilot, Lease& lease) {
  lease.counted = true;
  pilot.free.subtract(lease.granted);
  pilot.in_room.insert(lease.attempt.task);
  ++pilot.classes[lease.in_class].with_room;
}

void PilotTable::wait_for_room(PilotState& pilot, const Lease& lease) {
  pilot.backlog.push_back(lease.attempt.task);
  ++backlogs_;
  ++pilot.classes[lease.in_class].waiting;
}

void PilotTable::waits_no_more(PilotState& pilot, const Lease& lease) {
  // They are started in the order in which they came, and given back from the end.
  if (!pilot.backlog.empty() && pilot.backlog.back() == lease.attempt.task) {
    pilot.backlog.pop_back();
  } else {
    const auto at = std::find(pilot.backlog.begin(), pilot.backlog.end(), lease.attempt.task);
    HPCBATCH_CHECK(at != pilot.backlog.end());
    pilot.backlog.erase(at);
  }
  --backlogs_;
  --pilot.classes[lease.in_class].waiting;
}

void PilotTable::grant(Lease lease) {
  PilotState* pilot = find(lease.pilot);
  HPCBATCH_CHECK(pilot);
  const TaskId task = lease.attempt.task;
  lease.held_by = pilot;
  if (lease.suspect) {
    ++pilot->suspects;
    ++suspects_;
  }
  pilot->leases.insert(task);
  const auto [at, is_new] = leases_.insert_or_assign(task, std::move(lease));
  HPCBATCH_CHECK(is_new);
  if (at->second.counted) {
    take_room(*pilot, at->second);
  } else {
    wait_for_room(*pilot, at->second);
  }
}

void PilotTable::claim(Lease& lease, PilotState& member, Resources granted) {
  member.free.subtract(granted);
  const bool is_new = member.claims.emplace(lease.attempt.task, std::move(granted)).second;
  HPCBATCH_CHECK(is_new && member.id.allocation == lease.pilot.allocation);
  lease.members.edit().push_back(member.id.rank);
}

void PilotTable::unclaim(Lease& lease, PilotState& member) {
  const auto at = member.claims.find(lease.attempt.task);
  HPCBATCH_CHECK(at != member.claims.end());
  if (!HPCBATCH_PLANTED(room_not_given_back)) member.free.add(at->second);
  member.claims.erase(at);
  std::erase(lease.members.edit(), member.id.rank);
  member.nothing_fits.reset();
  count_backlog(member);
}

Lease* PilotTable::claimed(const PilotId& pilot, const AttemptId& attempt) {
  Lease* found = lease(attempt.task);
  const PilotState* member = find(pilot);
  return found && found->attempt == attempt && member && member->claims.contains(attempt.task)
             ? found
             : nullptr;
}

void PilotTable::count_backlog(PilotState& pilot) {
  while (!pilot.backlog.empty()) {
    Lease& next = leases_.at(pilot.backlog.front());
    if (!fits(next.granted, pilot.free)) return;
    waits_no_more(pilot, next);
    take_room(pilot, next);
  }
}

void PilotTable::started(Lease& lease, Time now) {
  if (lease.state == Lease::State::Sent) lease.state = Lease::State::Running;
  if (!lease.started) lease.started = now;
  if (lease.counted || lease.has_left) return;
  waits_no_more(*lease.held_by, lease);
  take_room(*lease.held_by, lease);
}

Lease PilotTable::release(TaskId task) {
  const auto at = leases_.find(task);
  HPCBATCH_CHECK(at != leases_.end());
  Lease lease = std::move(at->second);
  leases_.erase(at);
  PilotState& pilot = *lease.held_by;
  pilot.leases.erase(task);
  if (lease.suspect) {
    --pilot.suspects;
    --suspects_;
    pilot.nothing_fits.reset();
  }
  failed_.erase(task);
  if (lease.told != Failure::Ok) lost_.erase(task);
  if (lease.has_left) {
    delayed_.erase(task);
  } else {
    give_room_back(pilot, lease);
  }
  return lease;
}

const std::string* PilotTable::why_lost(TaskId task) const {
  const auto at = lost_.find(task);
  return at == lost_.end() ? nullptr : &at->second;
}

const Outcome* PilotTable::failed(TaskId task) const {
  const auto at = failed_.find(task);
  return at == failed_.end() ? nullptr : &at->second;
}

const std::string* PilotTable::why_delayed(TaskId task) const {
  const auto at = delayed_.find(task);
  return at == delayed_.end() ? nullptr : &at->second;
}

void PilotTable::give_room_back(PilotState& pilot, const Lease& lease) {
  PilotState::Share& of_class = pilot.classes[lease.in_class];
  if (lease.counted) {
    --of_class.with_room;
    pilot.in_room.erase(lease.attempt.task);
    if (!HPCBATCH_PLANTED(room_not_given_back)) pilot.free.add(lease.granted);
    pilot.nothing_fits.reset();
  } else {
    waits_no_more(pilot, lease);
  }
  if (of_class.with_room == 0 && of_class.waiting == 0) pilot.classes.erase(lease.in_class);
  count_backlog(pilot);
}

void PilotTable::leave_room(Lease& lease) {
  if (lease.has_left) return;
  give_room_back(*lease.held_by, lease);
  lease.counted = false;
  lease.has_left = true;
}

void PilotTable::recount(PilotState& pilot) {
  pilot.free = pilot.capacity;
  for (const auto& [task, granted] : pilot.claims) pilot.free.subtract(granted);
  pilot.nothing_fits.reset();
  backlogs_ -= pilot.backlog.size();
  pilot.backlog.clear();
  pilot.in_room.clear();
  pilot.classes.clear();
  for (const TaskId task : pilot.leases) {
    Lease& lease = leases_.at(task);
    lease.counted = false;
    if (lease.has_left) continue;
    if (lease.state == Lease::State::Sent) {
      wait_for_room(pilot, lease);
    } else {
      take_room(pilot, lease);
    }
  }
  count_backlog(pilot);
}

/// In which way it runs, and which kind of GPU it has, its pilot knows; that many of one kind are
/// taken.
Resources PilotTable::taken_of(const Needs& needs, const PilotState& pilot) {
  Resources taken = share(way_of(needs, way_into(needs, pilot.capacity).value_or(0)), pilot);
  return fits(taken, pilot.capacity) ? resolve(taken, pilot.capacity) : taken;
}

void PilotTable::settle(Lease& lease, const Needs& needs, const PilotState& pilot) {
  lease.granted = taken_of(needs, pilot);
  lease.guessed = false;
}

void PilotTable::settle_claim(const Lease& lease, const Needs& needs, PilotState& pilot) {
  pilot.claims.at(lease.attempt.task) = taken_of(needs, pilot);
}

// NOLINTNEXTLINE(readability-function-cognitive-complexity)
void PilotTable::check_invariants() const {
  std::size_t leased = 0;
  std::size_t backlogs = 0;
  std::size_t suspects = 0;
  for (const auto& [id, pilot] : pilots_) {
    leased += pilot.leases.size();
    backlogs += pilot.backlog.size();
    Resources sum = pilot.free;
    for (const auto& [task, granted] : pilot.claims) {
      sum.add(granted);
      const Lease& lease = leases_.at(task);
      const std::vector<std::uint32_t>& ranks = lease.members.get();
      HPCBATCH_CHECK(lease.pilot.allocation == id.allocation && lease.pilot != id);
      HPCBATCH_CHECK(std::count(ranks.begin(), ranks.end(), id.rank) == 1);
    }
    std::size_t waiting = 0;
    std::size_t left = 0;
    std::map<ClassId, PilotState::Share> classes;
    for (const TaskId task : pilot.leases) {
      const Lease& lease = leases_.at(task);
      HPCBATCH_CHECK(lease.pilot == id && lease.held_by == &pilot);
      if (lease.suspect) ++suspects;
      for (const std::uint32_t rank : lease.members.get())
        HPCBATCH_CHECK(pilots_.at(lease.member(rank)).claims.contains(task));
      if (lease.has_left) {
        ++left;
        continue;
      }
      if (lease.counted) {
        sum.add(lease.granted);
        ++classes[lease.in_class].with_room;
      } else {
        ++waiting;
        ++classes[lease.in_class].waiting;
      }
    }
    HPCBATCH_CHECK(classes == pilot.classes);
    HPCBATCH_CHECK(waiting == pilot.backlog.size());
    HPCBATCH_CHECK(waiting + left + pilot.in_room.size() == pilot.leases.size());
    for (const TaskId task : pilot.in_room) HPCBATCH_CHECK(leases_.at(task).counted);
    for (const TaskId task : pilot.backlog)
      HPCBATCH_CHECK(pilot.leases.contains(task) && !leases_.at(task).counted);
    if (pilot.registered) HPCBATCH_CHECK(sum == pilot.capacity);
  }
  HPCBATCH_CHECK(leased == leases_.size());
  HPCBATCH_CHECK(backlogs == backlogs_);
  HPCBATCH_CHECK(suspects == suspects_);
}

}  // namespace hpcbatch

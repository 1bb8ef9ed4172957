#include "pilot/policy/decide.hpp"

#include "planted/planted.hpp"

#include <algorithm>
#include <csignal>
#include <utility>

namespace hpcbatch::pilot {
namespace {

using namespace std::chrono_literals;

// How many tasks may be started past one that does not fit yet, and how far ahead is looked for one
// that does.
constexpr unsigned kPatience = 64;
constexpr std::size_t kLookAhead = 64;
// Between TERM and KILL, where nothing is said; of what has used up its time, as with SLURM
// (slurm.conf(5), KillWait).
constexpr Duration kGrace = 5s;
constexpr Duration kGraceAtLimit = 30s;

std::optional<Duration> limit_of(Duration said) {
  return said == Duration{} ? std::nullopt : std::optional(said);
}

}  // namespace

Decide::Decide(Room room, Terms terms, Time now)
    : room_(std::move(room)), terms_(terms), idleness_(terms.idle, terms.until_found, now) {}

// --- what the engine asks ----------------------------------------------------------------------

void Decide::leased(const Lease& lease) {
  const auto [at, is_new] = held_.try_emplace(lease.id);
  if (!is_new) return;
  if (!last_granted_.needs || lease.granted != last_granted_.amounts) {
    const auto needs = room_.needs_of(lease.granted);
    last_granted_.amounts = lease.granted;
    last_granted_.needs = needs ? std::make_shared<const Room::Needs>(*needs) : nullptr;
  }
  if (phase_ != Phase::Working || stuck_ || !last_granted_.needs) {
    held_.erase(at);
    actions_.push_back(Return{lease.id});
    return;
  }
  at->second.needs = last_granted_.needs;
  at->second.time_limit = lease.time_limit;
  at->second.cpus = lease.cpus;
  at->second.begins_later = lease.begins_later;
  at->second.farewell = lease.farewell;
  at->second.holds_room = lease.holds_room;
  queue_.push_back(lease.id);
  ++counts_.waiting;
}

void Decide::recalled(std::uint32_t count) {
  std::vector<AttemptId> stay;
  while (count > 0 && !queue_.empty()) {
    const auto at = held_.find(queue_.back());
    queue_.pop_back();
    if (at == held_.end() || at->second.state != State::Waiting) continue;
    if (at->second.holds_room) {
      stay.push_back(at->first);
      continue;
    }
    actions_.push_back(Return{at->first});
    held_.erase(at);
    --counts_.waiting;
    --count;
  }
  queue_.insert(queue_.end(), stay.rbegin(), stay.rend());
}

void Decide::signal_asked(const Signal& signal) {
  const auto at = held_.find(signal.id);
  if (at != held_.end() && at->second.state == State::Running && !at->second.stopping)
    actions_.push_back(signal);
}

void Decide::kill_asked(const AttemptId& id, Failure failure, bool silent, Time now) {
  const auto at = held_.find(id);
  if (at == held_.end()) return;
  Held& held = at->second;
  held.silent = held.silent || silent;
  switch (held.state) {
    case State::Waiting:
      --counts_.waiting;
      if (silent) {
        forget(at);
      } else {
        actions_.push_back(Fail{id, failure, "it was ended before it started"});
        deliver(id, held, 0);
      }
      break;
    case State::Running:
      stop(id, held, failure, "", silent, now);
      break;
    case State::Staged:
      --counts_.staged;
      actions_.push_back(Discard{id});
      if (silent) {
        forget(at);
      } else {
        actions_.push_back(Fail{id, failure, "it was ended before its outputs were published"});
        deliver(id, held, 0);
      }
      break;
    case State::Publishing:
      break;  // too late to be taken back; a silent one is forgotten when that is done
    case State::Delivered:
      if (silent) forget(at);
      break;
  }
}

void Decide::publish_allowed(const AttemptId& id) {
  const auto at = held_.find(id);
  if (at == held_.end() || at->second.state != State::Staged) return;
  at->second.state = State::Publishing;
  --counts_.staged;
  ++counts_.publishing;
  actions_.push_back(Publish{id});
}

void Decide::acknowledged(const AttemptId& id, Time now) {
  const auto at = held_.find(id);
  // The first result of a task with outputs may be acknowledged as well: it is not the last.
  if (at == held_.end() || at->second.state != State::Delivered) return;
  idleness_.answered(now);
  forget(at);
}

// --- what happened here ------------------------------------------------------------------------

void Decide::welcomed(Time now) {
  linked_ = true;
  idleness_.welcomed(now);
}

void Decide::link_lost() {
  linked_ = false;
  for (auto at = held_.begin(); HPCBATCH_PLANTED(result_dropped_with_link) && at != held_.end();) {
    const auto next = std::next(at);
    if (at->second.state == State::Delivered) forget(at);
    at = next;
  }
}

void Decide::workspace_stuck(Time now) {
  if (std::exchange(stuck_, true)) return;
  return_waiting();
  for (auto& [id, held] : held_) {
    if (!held.alarm || held.stopping) continue;
    held.time_left = held.ends_with_pilot ? held.time_limit : *held.alarm - now;
    set_alarm(id, held, std::nullopt);
  }
}

void Decide::workspace_well(Time now) {
  if (!std::exchange(stuck_, false)) return;
  idleness_.worked(now);
  for (auto& [id, held] : held_) {
    const auto left = std::exchange(held.time_left, std::nullopt);
    if (left && held.state == State::Running && !held.stopping)
      watch_end(id, held, *left == Duration{} ? std::nullopt : left, now);
  }
}

void Decide::suspended(Duration time) {
  for (auto* moments : {&alarms_, &warnings_}) {
    std::set<std::pair<Time, AttemptId>> later;
    for (const auto& [moment, id] : *moments) later.emplace(moment + time, id);
    *moments = std::move(later);
  }
  for (auto& [id, held] : held_) {
    if (held.alarm) *held.alarm += time;
    if (held.warning) *held.warning += time;
  }
  idleness_.suspended(time);
  for (std::optional<Time>* since : {&empty_since_, &haste_since_, &terms_.usable_until}) {
    if (*since) **since += time;
  }
}

void Decide::began(const AttemptId& id, Time now) {
  const auto at = held_.find(id);
  if (at == held_.end() || at->second.state != State::Running) return;
  Held& held = at->second;
  if (held.stopping) return;
  if (stuck_) {
    held.time_left = held.time_limit;
  } else {
    watch_end(id, held, limit_of(held.time_limit), now);
  }
}

void Decide::handed_back(const AttemptId& id, Time now) {
  const auto at = held_.find(id);
  if (at == held_.end() || at->second.state != State::Running) return;
  room_.give_back(*at->second.needs, at->second.placement);
  set_alarm(id, at->second, std::nullopt);
  --counts_.running;
  idleness_.worked(now);
  if (at->second.silent) return forget(at);
  actions_.push_back(Return{id});
  held_.erase(at);
}

bool Decide::ended(const AttemptId& id, bool staged, std::size_t result_bytes, Time now) {
  const auto at = held_.find(id);
  if (at == held_.end() || at->second.state != State::Running) return false;
  Held& held = at->second;
  room_.give_back(*held.needs, held.placement);
  set_alarm(id, held, std::nullopt);
  --counts_.running;
  idleness_.worked(now);
  if (held.silent) {
    if (staged) actions_.push_back(Discard{id});
    forget(at);
    return false;
  }
  if (staged) {
    held.state = State::Staged;
    ++counts_.staged;
    if (HPCBATCH_PLANTED(published_without_permission)) publish_allowed(id);
  } else {
    deliver(id, held, result_bytes);
  }
  return true;
}

bool Decide::published(const AttemptId& id, std::size_t result_bytes, Time now) {
  const auto at = held_.find(id);
  if (at == held_.end() || at->second.state != State::Publishing) return false;
  --counts_.publishing;
  idleness_.worked(now);
  if (at->second.silent) {
    forget(at);
    return false;
  }
  deliver(id, at->second, result_bytes);
  return true;
}

void Decide::found_result(const AttemptId& id, std::size_t result_bytes) {
  const auto [at, is_new] = held_.try_emplace(id);
  if (is_new) deliver(id, at->second, result_bytes);
  outbox_.found();
}

void Decide::end_for(const AttemptId& id, Failure failure, const std::string& message) {
  const auto at = held_.find(id);
  if (at == held_.end() || at->second.state != State::Running || at->second.by_force) return;
  at->second.by_force = true;
  at->second.stopping = true;
  set_alarm(id, at->second, std::nullopt);
  actions_.push_back(Stop{id, true, failure, message});
}

void Decide::gpu_broke(unsigned device, const std::string& why, Time now) {
  room_.set_aside(device);
  for (auto& [id, held] : held_) {
    const auto& gpus = held.placement.gpus;
    if (held.state == State::Running && std::find(gpus.begin(), gpus.end(), device) != gpus.end())
      stop(id, held, Failure::GpuError, why, false, now);
  }
  last_granted_.needs = nullptr;
  return_what_never_fits();
  if (!room_.has_gpus()) must_leave(LeaveCause::GpusFailed, now);
}

// --- deciding ----------------------------------------------------------------------------------

std::vector<Action> Decide::decide(Time now) {
  due(now);
  if (phase_ == Phase::Working) start_what_fits(now);
  idleness_.owed(outbox_.owes(), linked_, now);
  if (!has_nothing_to_do()) {
    idleness_.worked(now);
  } else if (const auto end = idle_ends(); phase_ == Phase::Working && end && now >= *end) {
    leave("idle");
  }
  if (outbox_.is_due(haste_since_.has_value())) write_outbox(now);
  leave_if_done(now);
  return std::exchange(actions_, {});
}

std::optional<Time> Decide::idle_ends() const {
  const auto never_found = idleness_.unregistered_ends();
  if (waits_for_workspace() || HPCBATCH_PLANTED(idle_pilot_stays)) return never_found;
  const auto idle = idleness_.ends();
  return idle && never_found ? std::min(*idle, *never_found) : idle ? idle : never_found;
}

/// Time limits, second signals, the end of the walltime.
void Decide::due(Time now) {
  while (!warnings_.empty() && warnings_.begin()->first <= now) {
    const AttemptId id = warnings_.begin()->second;
    Held& held = held_.at(id);
    set_warning(id, held, std::nullopt);
    if (!held.stopping) actions_.push_back(Signal{id, held.farewell.early_signal, SignalTo::All});
  }
  while (!alarms_.empty() && alarms_.begin()->first <= now) {
    const AttemptId id = alarms_.begin()->second;
    Held& held = held_.at(id);
    set_alarm(id, held, std::nullopt);
    if (!held.stopping && held.ends_with_pilot) {
      stop(id, held, Failure::PilotWalltime, "the pilot's time was used up", false, now);
    } else if (!held.stopping) {
      stop(id, held, Failure::TimeTask, "it ran longer than its time limit", false, now);
    } else if (!held.by_force) {
      held.by_force = true;
      actions_.push_back(Stop{id, true, std::nullopt, ""});
    }
  }
  if (terms_.usable_until && now >= *terms_.usable_until && phase_ != Phase::Gone) {
    if (!haste_since_) haste_since_ = now;
    if (phase_ == Phase::Working) leave("walltime");
    stop_running(Failure::PilotWalltime, "the pilot's time was used up", false, now);
  }
  if (haste_since_ && (now >= *haste_since_ + kGrace || !linked_) && counts_.running == 0 &&
      counts_.staged > 0) {
    fail_staged(time_is_up(now) ? Failure::PilotWalltime : Failure::PilotKilled,
                "the pilot ended before it was allowed to publish the outputs");
  }
}

bool Decide::fits_in_time(const Held& held, Time now) const {
  if (!terms_.usable_until) return true;
  if (now >= *terms_.usable_until) return false;
  return held.time_limit <= *terms_.usable_until - now;
}

// NOLINTNEXTLINE(readability-function-cognitive-complexity)
void Decide::start_what_fits(Time now) {
  std::vector<Held*> passed;
  std::size_t at = 0;
  while (at < queue_.size() && passed.size() < kLookAhead && !room_.is_full()) {
    const auto found = held_.find(queue_[at]);
    const bool waits = found != held_.end() && found->second.state == State::Waiting;
    if (waits && fits_in_time(found->second, now)) {
      Held& held = found->second;
      if (auto placement = room_.take(*held.needs, held.cpus)) {
        held.state = State::Running;
        held.placement = *placement;
        --counts_.waiting;
        ++counts_.running;
        if (!held.begins_later) watch_end(found->first, held, limit_of(held.time_limit), now);
        const auto end = end_of(held, limit_of(held.time_limit), now);
        actions_.push_back(Launch{found->first, std::move(*placement),
                                  end ? std::optional(*end - now) : std::nullopt});
        for (Held* earlier : passed) ++earlier->passed_over;
      } else {
        if (held.passed_over >= kPatience) return;  // room is kept for it
        passed.push_back(&held);
        ++at;
        continue;
      }
    } else if (waits) {
      actions_.push_back(Return{found->first});
      held_.erase(found);
      --counts_.waiting;
    }
    if (at == 0) {
      queue_.pop_front();
    } else {
      queue_.erase(queue_.begin() + static_cast<std::ptrdiff_t>(at));
    }
  }
}

void Decide::return_what_never_fits() {
  for (const AttemptId& id : queue_) {
    const auto at = held_.find(id);
    if (at == held_.end() || at->second.state != State::Waiting ||
        room_.could_ever_take(*at->second.needs))
      continue;
    actions_.push_back(Return{id});
    held_.erase(at);
    --counts_.waiting;
  }
}

void Decide::return_waiting() {
  for (const AttemptId& id : queue_) {
    const auto at = held_.find(id);
    if (at == held_.end() || at->second.state != State::Waiting) continue;
    if (results_wanted_) {
      actions_.push_back(Return{id});
    } else {
      actions_.push_back(Forget{id});
    }
    held_.erase(at);
  }
  queue_.clear();
  counts_.waiting = 0;
}

void Decide::stop_running(Failure failure, const std::string& message, bool by_force, Time now) {
  if (counts_.running == 0) return;
  for (auto& [id, held] : held_) {
    if (held.state == State::Running) stop(id, held, failure, message, by_force, now);
  }
}

void Decide::stop(const AttemptId& id, Held& held, Failure failure, const std::string& message,
                  bool by_force, Time now) {
  if (held.by_force || (held.stopping && !by_force)) return;
  held.stopping = true;
  held.by_force = by_force;
  actions_.push_back(Stop{id, by_force, failure, message});
  set_warning(id, held, std::nullopt);
  set_alarm(id, held, by_force ? std::nullopt : std::optional(second_signal(held, failure, now)));
}

/// When it is to end with its pilot: whoever wants longer than there is behind that is told sooner.
std::optional<Time> Decide::pilots_end_for(const Held& held) const {
  if (!terms_.usable_until) return std::nullopt;
  const Duration behind = std::max(kGrace, terms_.margin - kGrace);
  return *terms_.usable_until - std::max(Duration{}, held.farewell.grace - behind);
}

std::optional<Time> Decide::end_of(const Held& held, std::optional<Duration> limit,
                                   Time now) const {
  const auto with_pilot = pilots_end_for(held);
  if (!limit) return with_pilot;
  return with_pilot ? std::min(now + *limit, *with_pilot) : now + *limit;
}

void Decide::watch_end(const AttemptId& id, Held& held, std::optional<Duration> limit, Time now) {
  const auto end = end_of(held, limit, now);
  const auto with_pilot = pilots_end_for(held);
  held.ends_with_pilot = with_pilot && *with_pilot < *terms_.usable_until && end == with_pilot;
  if (held.ends_with_pilot)
    set_alarm(id, held, end);
  else if (limit)
    set_alarm(id, held, now + *limit);
  if (end && held.farewell.early_signal != 0)
    set_warning(id, held, std::max(now, *end - held.farewell.early));
}

/// KILL comes before the batch system's.
Time Decide::second_signal(const Held& held, Failure failure, Time now) const {
  const Duration said = held.farewell.grace;
  const Duration grace = said != Duration{}             ? said
                         : failure == Failure::TimeTask ? kGraceAtLimit
                                                        : kGrace;
  if (!terms_.usable_until) return now + grace;
  const Time latest = *terms_.usable_until + std::max(kGrace, terms_.margin - kGrace);
  return std::max(now + std::min(grace, kGrace), std::min(now + grace, latest));
}

void Decide::set_warning(const AttemptId& id, Held& held, std::optional<Time> time) {
  if (held.warning) warnings_.erase({*held.warning, id});
  held.warning = time;
  if (time) warnings_.insert({*time, id});
}

/// Without one it is watched no more.
void Decide::set_alarm(const AttemptId& id, Held& held, std::optional<Time> time) {
  if (!time) set_warning(id, held, std::nullopt);
  if (held.alarm) alarms_.erase({*held.alarm, id});
  held.alarm = time;
  if (time) alarms_.insert({*time, id});
}

void Decide::fail_staged(Failure failure, const std::string& message) {
  for (auto& [id, held] : held_) {
    if (held.state != State::Staged) continue;
    --counts_.staged;
    actions_.push_back(Discard{id});
    actions_.push_back(Fail{id, failure, message});
    deliver(id, held, 0);
  }
}

void Decide::deliver(const AttemptId&, Held& held, std::size_t result_bytes) {
  held.state = State::Delivered;
  held.result_bytes = result_bytes;
  outbox_.owe(result_bytes);
}

void Decide::forget(Holds::iterator at) {
  if (at->second.state == State::Delivered) outbox_.acknowledged(at->second.result_bytes);
  actions_.push_back(Forget{at->first});
  held_.erase(at);
}

std::optional<Time> Decide::next() const {
  // What was told after the last decision: the loop would sleep over it, to the walltime.
  if (!actions_.empty()) return Time{};
  std::optional<Time> earliest;
  const auto consider = [&earliest](Time time) {
    if (!earliest || time < *earliest) earliest = time;
  };
  if (!alarms_.empty()) consider(alarms_.begin()->first);
  if (!warnings_.empty()) consider(warnings_.begin()->first);
  if (phase_ == Phase::Working) {
    if (terms_.usable_until) consider(*terms_.usable_until);
    const auto end = has_nothing_to_do() ? idle_ends() : std::nullopt;
    if (end) consider(*end);
  } else if (phase_ == Phase::Draining && terms_.usable_until && !haste_since_) {
    consider(*terms_.usable_until);
  }
  if (haste_since_ && counts_.staged > 0 && counts_.running == 0) consider(*haste_since_ + kGrace);
  const auto retry_at = outbox_.retry_at();
  if (retry_at) consider(*retry_at);
  if (phase_ == Phase::Leaving && !retry_at) consider(farewell_ends());
  return earliest;
}

std::vector<std::pair<AttemptId, Decide::State>> Decide::held() const {
  std::vector<std::pair<AttemptId, State>> all;
  all.reserve(held_.size());
  for (const auto& [id, held] : held_) all.emplace_back(id, held.state);
  return all;
}

std::optional<Decide::State> Decide::state_of(const AttemptId& id) const {
  const auto at = held_.find(id);
  return at == held_.end() ? std::nullopt : std::optional(at->second.state);
}

}  // namespace hpcbatch::pilot

// Routes each event to the part that it concerns, then fills pilots and asks for more where that
// changed something.
#include "engine/engine.hpp"

#include "engine/sites/keeps.hpp"
#include "engine/sites/site_forecast.hpp"
#include "model/check.hpp"
#include "planted/planted.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace hpcbatch {
namespace {

using namespace std::chrono_literals;

// Estimates of running work, silent pilots and passed-over tasks are looked at this often while
// there are any.
constexpr Duration kLook = 1s;
// For batch systems to say that allocations have ended, whose files are then removed.
constexpr Duration kLastLook = 10s;

}  // namespace

Engine::Engine(const std::vector<Site>& sites, const Snapshot& snapshot,
               const LiveArrays& live_arrays, std::uint64_t seed, Time now)
    : tasks_(
          actions_, [this](const Needs& needs) { return fits_shapes(sites_.sites(), needs); },
          [this](const Needs& grown, const Needs& least) { return within_shapes(grown, least); }),
      sites_(actions_, sites, snapshot.engine_name,
             seed ^ (snapshot.engine_start * 0x9E3779B97F4A7C15ULL)),
      engine_start_(snapshot.engine_start),
      started_at_(now),
      random_(seed + snapshot.engine_start) {
  const LiveArrays with_shapes = [&] {
    const LiveArray* next = live_arrays();
    if (next) sites_.made_shapes().make_for(next->array.needs);
    return next;
  };
  tasks_.set_time(now);
  tasks_.restore(snapshot, with_shapes, [this](const Needs& needs) { return longest_for(needs); });
  sites_.restore(snapshot, now);
  Keeps(sites_).restore(snapshot.keeps, now);
  for (const StoredKey& key : snapshot.keys)
    keys_[key.client + '\0' + key.key] = {key.content, key.ids};
  for (const KnownSpeed& speed : snapshot.speeds)
    broker_.speeds().add(speed.kind, speed.device, {speed.mean, speed.variance, speed.count});
  // Whoever lives has lost its connection with the engine before, and needs time to come back.
  for (const StoredReader& reader : snapshot.readers)
    readers_.reads(reader.by, reader.array, 1, now);
  restore_pilots(snapshot, now);
  note_overtaken(now);
  next_look_ = now;
}

Actions Engine::on(const Event& event, Time now) {
  tasks_.set_time(now);
  std::visit([&](const auto& e) { handle(e, now); }, event);
  return settle(std::holds_alternative<TimePassed>(event), now);
}

Actions Engine::on(TasksSubmitted&& event, Time now) {
  tasks_.set_time(now);
  handle(std::move(event), now);
  return settle(false, now);
}

/// What follows from whatever has happened.
Actions Engine::settle(bool time_passed, Time now) {
  end_unread(now);
  end_late_tasks();
  give_up_arrays(now);
  tasks_.tell_ended();
  hold_what_came_back();
  bool files_changed = !time_passed;
  if (next_look_ <= now) {
    next_look_ = now + kLook;
    work_changed_ = true;
    files_changed = true;
    trust_.on_time(now);
    watch_silence(now);
    if (Keeps(sites_).on_time(now)) cancel_what_was_kept(now);
    take_back_unused(now);
    keep_room(now);
    hold_what_came_back();
  }
  end_refused_tasks(now);
  stage_in_if_due(files_changed, now);
  fill_pilots(now);
  judge_newcomer(now);
  if (work_changed_ && !drain_.on) ask_for_pilots(now);
  work_changed_ = false;
  keep_pilots(now);
  sites_.on_time(now);
  QueueLooks(sites_).on_time(now);
  end_if_drained(now);
  forget_readers();
  if (walks_invariants) walk_invariants_if_due();
  return std::exchange(actions_, {});
}

std::optional<Time> Engine::next_wake() const {
  std::optional<Time> wake = sites_.next_wake();
  for (const auto& due :
       {readers_.next_wake(), filling_.recall_due, filling_.cold_due, stage_in_.due, drain_.by,
        QueueLooks::next_wake(sites_), tasks_.next_moment()})
    if (due) wake = wake ? std::min(*wake, *due) : due;
  bool watching = tasks_.queue().size() != 0 || pilots_.backlogs() != 0 || keeps_any(sites_);
  for (const auto& [id, pilot] : pilots_.all())
    watching = watching || (!pilot.connected && !pilot.is_empty());
  for (const auto& [id, entry] : sites_.allocations())
    watching = watching || !sites_.site(entry.facts.site);
  if (watching) wake = wake ? std::min(*wake, next_look_) : next_look_;
  return wake;
}

void Engine::end_if_drained(Time now) {
  if (!drain_.on || drain_.is_told) return;
  if (!pilots_.leases().empty()) {
    drain_.by.reset();
    return;
  }
  if (!drain_.by) drain_.by = now + kLastLook;
  const auto& allocations = sites_.allocations();
  const bool some_are_to_end = std::any_of(
      allocations.begin(), allocations.end(),
      [&](const auto& entry) { return sites_.site(entry.second.facts.site) != nullptr; });
  if (some_are_to_end && now < *drain_.by) return;
  drain_.is_told = true;
  drain_.by.reset();
  actions_.push_back(EngineIdle{});
}

/// For what comes.  What nobody has chosen any more makes room.
void Engine::make_shapes_for(const std::vector<const Needs*>& coming) {
  bool all = true;
  for (const Needs* needs : coming) all = sites_.made_shapes().make_for(*needs) && all;
  if (all) return;
  std::vector<const Needs*> chosen = tasks_.all_needs();
  chosen.insert(chosen.end(), coming.begin(), coming.end());
  sites_.made_shapes().keep_for(chosen);
  for (const Needs* needs : coming) sites_.made_shapes().make_for(*needs);
}

void Engine::handle(TasksSubmitted&& event, Time now) {
  const RequestId request = event.request;
  const std::uint64_t content = event.content;
  const std::string key = event.client + '\0' + event.key;
  if (!event.key.empty()) {
    if (const auto known = keys_.find(key); known != keys_.end()) {
      if (known->second.content == event.content) {
        hand_over(known->second.ids, event.read_by, now);
        actions_.push_back(AnswerSubmit{event.request, known->second.ids});
      } else {
        actions_.push_back(AnswerRefused{
            event.request,
            fmt::format(
                "the key '{0}' was used before with other content (tasks {1}); choose another key; "
                "of a list of items that was changed, --skip-done {1} runs only what is not done",
                event.key, known->second.ids.front().value),
            true});
      }
      return;
    }
  }
  std::vector<const Needs*> choosing;
  for (const NewArray& array : event.arrays) {
    if (!array.needs.tags.empty()) choosing.push_back(&array.needs);
  }
  make_shapes_for(choosing);
  for (const NewArray& array : event.arrays) {
    if (auto text = misfit(array)) {
      if (!choosing.empty()) sites_.made_shapes().keep_for(tasks_.all_needs());
      actions_.push_back(AnswerRefused{event.request, *text, false});
      return;
    }
  }
  for (const NewArray& array : event.arrays) note_starts_for(array.after);
  const bool has_key = !event.key.empty();
  const std::size_t before = actions_.size();
  if (auto refusal = tasks_.submit(std::move(event), now)) {
    actions_.push_back(AnswerRefused{request, *refusal, false});
    return;
  }
  tasks_.tell_ended();
  const SaveArrays& saved = std::get<SaveArrays>(actions_[before]);
  std::vector<ArrayId> ids;
  ids.reserve(saved.arrays.size());
  for (std::size_t i = 0; i < saved.arrays.size(); ++i) ids.push_back(saved.id_of(i));
  if (has_key) keys_[key] = {content, ids};
  if (saved.read_by) readers_.reads(*saved.read_by, saved.first, saved.arrays.size(), now);
  actions_.push_back(AnswerSubmit{request, std::move(ids)});
  work_changed_ = true;
}

Engine::Cancelled Engine::cancel_tasks(const std::vector<Selection>& tasks, const std::string& why,
                                       Time now) {
  Cancelled all;
  for (const Selection& selection : tasks) {
    SaveCancelled newly;
    for (const TaskId task : tasks_.cancel(selection, why, now, all.tasks)) {
      Lease* lease = pilots_.lease(task);
      HPCBATCH_CHECK(lease);
      ++all.at_pilots;
      if (!std::exchange(lease->cancelled, true)) newly.tasks.push_back(task);
    }
    tasks_.tell_ended();
    if (newly.tasks.empty()) continue;
    actions_.push_back(newly);
    for (const TaskId task : newly.tasks) {
      const Lease& lease = *pilots_.lease(task);
      const PilotState* pilot = pilots_.find(lease.pilot);
      if (pilot && (pilot->connected || lease.has_left)) {
        actions_.push_back(KillAttempt{lease.pilot, lease.attempt, Failure::Cancelled, false});
      } else if (pilot && !sites_.site(pilot->site) && lease.state != Lease::State::Publishing) {
        // Nobody will say what became of it; a pilot that comes back all the same is told to kill
        // it.
        Outcome outcome;
        outcome.failure = Failure::Cancelled;
        outcome.message = fmt::format(
            "cancelled by user; its site {} is no longer in the configuration", pilot->site);
        outcome.ended = now;
        end_lease(take_lease(task), std::move(outcome), Blame::None, now);
      }
    }
  }
  return all;
}

void Engine::handle(const CancelAsked& event, Time now) {
  // Who waits for others has a higher number: what is named itself is cancelled, and not failed
  // because of what it waits for.
  std::vector<Selection> tasks = event.tasks;
  std::stable_sort(tasks.begin(), tasks.end(), [](const Selection& one, const Selection& other) {
    return one.array > other.array;
  });
  const Cancelled cancelled = cancel_tasks(tasks, kBeforeItStarted, now);
  tasks_.tell_ended();
  actions_.push_back(AnswerCount{event.request, cancelled.tasks, cancelled.at_pilots});
}

void Engine::handle(const RetryAsked& event, Time now) {
  std::vector<const Needs*> choosing;
  for (const RevivedArray& revived : event.arrays) choosing.push_back(&revived.array.needs);
  make_shapes_for(choosing);
  for (const RevivedArray& revived : event.arrays) {
    if (!revived.has_new_needs) continue;
    if (auto text = misfit(revived.array)) {
      actions_.push_back(AnswerRefused{event.request, *text, false});
      return;
    }
  }
  for (const RevivedArray& revived : event.arrays) note_starts_for(revived.array.after);
  const std::uint64_t changed = tasks_.revive(event, now);
  tasks_.tell_ended();
  actions_.push_back(AnswerCount{event.request, changed});
  work_changed_ = true;
}

void Engine::handle(const StopAsked& event, Time now) {
  if (event.mode == StopAsked::Mode::Leave) {
    actions_.push_back(EngineIdle{});
    return;
  }
  drain_.on = true;
  if (event.mode == StopAsked::Mode::Now) {
    Keeps(sites_).end_all();
    std::vector<Selection> all;
    for (const auto& [id, array] : tasks_.arrays()) all.push_back({id, std::nullopt});
    cancel_tasks(all, kBeforeItStarted, now);
  }
  for (auto& [id, pilot] : pilots_.all()) end_if_empty(pilot);
  for (const auto& [id, entry] : sites_.allocations()) {
    const bool waits = entry.facts.state == AllocationState::Queued ||
                       entry.facts.state == AllocationState::Unclear;
    if (waits || event.mode == StopAsked::Mode::Now) {
      const PilotState* first = pilots_.find(PilotId{id, 0});
      // A pilot that is there reports what it killed before it goes; the batch system would be
      // ruder.
      if (!first || !first->connected) cancel_allocation(id, "the engine is being stopped", now);
    }
  }
}

void Engine::handle(const AllocationAccepted& event, Time now) {
  sites_.accepted(event, now);
  if (drain_.on) cancel_if_it_waits(event.allocation, now);
  work_changed_ = true;
}

void Engine::handle(const AllocationRefused& event, Time now) {
  if (sites_.refused(event, now)) {
    sites_.forget(event.allocation);
  } else if (drain_.on) {
    cancel_if_it_waits(event.allocation, now);
  }
  work_changed_ = true;
}

/// One whose pilot came before the answer to its submit runs what it has to the end.
void Engine::cancel_if_it_waits(const AllocationId& id, Time now) {
  const AllocationEntry* entry = sites_.find(id);
  if (!entry || entry->facts.state == AllocationState::Running) return;
  cancel_allocation(id, "the engine is being stopped", now);
}

void Engine::handle(const SitePolled& event, Time now) {
  for (const AllocationOver& over : sites_.polled(event, allocations_with_pilots(), now))
    allocation_over(over, now);
  work_changed_ = true;
}

void Engine::handle(const SitePollFailed& event, Time now) {
  sites_.poll_failed(event, now);
}

void Engine::handle(const TimePassed&, Time) {}

bool Engine::is_idle() const {
  return tasks_.arrays().empty() && pilots_.leases().empty() && sites_.allocations().empty() &&
         !keeps_any(sites_);
}

TaskCounts Engine::counts() const {
  TaskCounts counts;
  const TaskTable::Totals& totals = tasks_.totals();
  counts.held = totals.at(TaskPartition::Held);
  counts.waiting = totals.all;
  for (const auto elsewhere :
       {TaskPartition::Ok, TaskPartition::NotOk, TaskPartition::Held, TaskPartition::Leased})
    counts.waiting -= totals.at(elsewhere);
  for (const auto& [task, lease] : pilots_.leases()) {
    const PilotState* pilot = pilots_.find(lease.pilot);
    if (lease.state == Lease::State::Sent) {
      ++counts.waiting;
    } else if (pilot && !pilot->connected && !lease.has_left) {
      ++counts.unknown;
    } else {
      ++counts.running;
    }
  }
  return counts;
}

void Engine::walk_invariants_if_due() {
  // A walk costs as much as there is; so large a system is walked the more rarely that what an
  // event costs does not grow.
  constexpr std::uint64_t kTasksPerEvent = 256;
  if (++events_since_walk_ * kTasksPerEvent < tasks_.totals().all) return;
  events_since_walk_ = 0;
  check_invariants();
}

// NOLINTNEXTLINE(readability-function-cognitive-complexity)
void Engine::check_invariants() const {
  tasks_.check_invariants();
  pilots_.check_invariants();
  sites_.check_invariants();
  check_readers();
  HPCBATCH_CHECK(tasks_.totals().at(TaskPartition::Leased) == pilots_.leases().size());
  for (const auto& [task, lease] : pilots_.leases()) {
    const ArrayState* array = tasks_.find(task.array);
    HPCBATCH_CHECK(array && array->tasks.leased().contains(task.index));
    HPCBATCH_CHECK(lease.attempt.task == task && lease.attempt.number != 0);
    HPCBATCH_CHECK(lease.attempt.engine_start() <= engine_start_);
    const std::vector<QueuePlace> places = array->places();
    HPCBATCH_CHECK(std::any_of(places.begin(), places.end(),
                               [in_class = lease.in_class](const QueuePlace& place) {
                                 return place.in_class == in_class;
                               }));
  }
  for (const auto& [id, pilot] : pilots_.all()) {
    const AllocationEntry* entry = sites_.find(id.allocation);
    HPCBATCH_CHECK(entry && entry->facts.site == pilot.site);
    // Who is not there any more holds nothing, unless what it left behind is being read.
    HPCBATCH_CHECK(entry->facts.state != AllocationState::Ended || over_.contains(id.allocation));
    HPCBATCH_CHECK(!pilot.connected || pilot.registered);
    HPCBATCH_CHECK(!pilot.kept_for ||
                   static_cast<std::size_t>(*pilot.kept_for) < tasks_.queue().classes());
  }
  for (const auto& [id, over] : over_) {
    const AllocationEntry* entry = sites_.find(id);
    HPCBATCH_CHECK(entry && entry->facts.state == AllocationState::Ended);
  }
  HPCBATCH_CHECK(tasks_.queue().size() == 0 || next_wake());
  HPCBATCH_CHECK(!newcomer_);
}

}  // namespace hpcbatch

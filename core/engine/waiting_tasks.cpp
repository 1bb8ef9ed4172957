// Tasks that wait for others, are held, are refused by every batch system, or belong to an array
// that is given up.
#include "engine/engine.hpp"
#include "engine/task_table.hpp"
#include "model/check.hpp"
#include "planted/planted.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace hpcbatch {

// How the end of tasks moves those that wait for them.  Ends are worked off from a queue, never by
// recursion: a chain may have a hundred thousand links.

namespace {

Outcome never_started(const std::string& cause, Time now) {
  Outcome outcome;
  outcome.failure = Failure::DependencyFailed;
  outcome.message = message_of_never_started(cause);
  outcome.ended = now;
  return outcome;
}

std::string which_succeeded(const Dependency& on) {
  return fmt::format(
      "{}, which was to fail and succeeded",
      on.index ? to_string(TaskId{on.array, *on.index}) : std::to_string(on.array.value));
}

/// What is known of tasks that others wait for.
struct Before {
  const IndexSet& all;
  const IndexSet& ok;
  const IndexSet& not_ok;
  const IndexSet& started;
  bool is_over{true};
};

enum class Standing : std::uint8_t { Open, Met, Never };

/// Not of EachSuccess, which is looked at for each task by itself.
Standing standing_of(const Dependency& on, const Before& before) {
  const bool one = on.index.has_value();
  const bool one_ok = one && before.ok.contains(*on.index);
  const bool one_bad = one && before.not_ok.contains(*on.index);
  const bool is_over = one ? one_ok || one_bad : before.is_over;
  const bool any_bad = one ? one_bad : !before.not_ok.empty();
  switch (on.kind) {
    case Dependency::Kind::AnyEnd:
      return is_over ? Standing::Met : Standing::Open;
    case Dependency::Kind::NotSuccess:
      if (!is_over) return Standing::Open;
      return any_bad ? Standing::Met : Standing::Never;
    case Dependency::Kind::Start: {
      IndexSet missing = one ? IndexSet(IndexRange{*on.index, *on.index}) : before.all;
      for (const IndexSet* there : {&before.ok, &before.not_ok, &before.started})
        missing.remove(*there);
      return missing.empty() ? Standing::Met : Standing::Open;
    }
    default:
      if (any_bad) return Standing::Never;
      return is_over ? Standing::Met : Standing::Open;
  }
}

}  // namespace

IndexSet TaskTable::unblocked(const ArrayState& array, const IndexSet& indices) const {
  if (waits_for_its_time(array)) return {};
  IndexSet ready = indices;
  for (const auto& [id, open] : array.open()) {
    if (HPCBATCH_PLANTED(dependant_starts_early)) break;
    if (open.on.kind != Dependency::Kind::EachSuccess) return {};
    const ArrayState* before = find(id);
    HPCBATCH_CHECK(before || open.known_ok);
    ready = ready.intersection(before ? before->tasks.ok() : *open.known_ok);
  }
  return ready;
}

void TaskTable::attach(ArrayState& array, const EndedFacts& ended, Time now) {
  Verdicts verdicts;
  for (const Dependency& dependency : array.after()) {
    if (!find(dependency.array)) {
      attach_to_ended(array, dependency, ended, verdicts);
      continue;
    }
    array.make_waits().open.emplace(dependency.array, OpenDependency{dependency, std::nullopt});
    std::vector<ArrayId>& waiting = dependants_[dependency.array];
    if (waiting.empty() || waiting.back() != array.id) waiting.push_back(array.id);
    if (dependency.kind == Dependency::Kind::Start) start_awaited_.insert(dependency.array);
  }
  const std::vector<Dependency> after = array.after();
  act_on(array, std::move(verdicts), now);
  // Only when all are attached: one that is met already must not let the tasks go before the others
  // are.
  for (const Dependency& dependency : after) {
    if (find(dependency.array)) spread_to(array, dependency.array, std::nullopt, "", now);
  }
}

/// What is waited for has left memory.
void TaskTable::attach_to_ended(ArrayState& array, const Dependency& on, const EndedFacts& ended,
                                Verdicts& verdicts) {
  const EndedArray* facts = ended.find(on.array);
  HPCBATCH_CHECK(facts);
  IndexSet culprits = facts->not_ok;
  if (on.kind == Dependency::Kind::EachSuccess) {
    array.make_waits().open.emplace(on.array, OpenDependency{on, facts->ok});
    culprits = culprits.intersection(array.tasks.all());
    verdicts.doomed.add(culprits);
    if (culprits.empty()) return;
  } else {
    IndexSet all = facts->ok;
    all.add(facts->not_ok);
    const Before before{all, facts->ok, facts->not_ok, {}};
    if (facts->is_pruned || standing_of(on, before) == Standing::Met) {
      verdicts.any_met = true;
      if (on.kind == Dependency::Kind::Start) verdicts.begun.push_back({on, now_});
      return;
    }
    verdicts.doomed.add(array.tasks.all());
  }
  if (!verdicts.never.empty()) return;
  if (on.kind == Dependency::Kind::NotSuccess) {
    verdicts.never = which_succeeded(on);
    return;
  }
  if (on.index) culprits = culprits.intersection(IndexRange{*on.index, *on.index});
  const bool by_first = !facts->failed_first.intersection(culprits).empty();
  verdicts.never = by_first ? facts->first_cause
                            : to_string(TaskId{on.array, culprits.ranges().front().first}) +
                                  ", which had ended without success";
}

/// Where one is enough the others do not matter, and none is the end before all are.
void TaskTable::act_on(ArrayState& array, Verdicts verdicts, Time now) {
  if (array.terms->course->any_of_after) {
    auto& open = array.make_waits().open;
    if (verdicts.any_met) open.clear();
    if (verdicts.any_met || !open.empty()) verdicts.doomed = {};
  }
  if (!verdicts.begun.empty()) note_begun(array, verdicts.begun);
  if (verdicts.doomed.empty()) return;
  const IndexSet hit = take_unleased(array, verdicts.doomed);
  end_unleased(array.id, hit, never_started(verdicts.never, now));
}

void TaskTable::forget_histories(ArrayId id, const IndexSet& indices) {
  if (indices.size() < histories_.size()) {
    for (const IndexRange& range : indices.ranges()) {
      for (std::uint64_t i = range.first; i <= range.last; ++i)
        histories_.erase({id, static_cast<std::uint32_t>(i)});
    }
  } else {
    std::erase_if(histories_, [&](const auto& entry) {
      return entry.first.array == id && indices.contains(entry.first.index);
    });
  }
}

/// Records ends of tasks that no pilot has.
void TaskTable::end_unleased(ArrayId id, const IndexSet& indices, const Outcome& outcome) {
  if (indices.empty()) return;
  actions_.push_back(SaveResults{id, indices, outcome});
  to_tell_.push_back(id);
  const TaskId first{id, indices.ranges().back().first};
  forget_histories(id, indices);
  ArrayState& array = get(id);
  if (array.rare) array.rare->cut.remove(indices);
  count_failures(array, indices, outcome.failure);
  record_end(id, indices, false, first_cause(first, outcome.failure, outcome.message),
             outcome.ended);
}

void TaskTable::record_end(ArrayId id, const IndexSet& indices, bool ok, const std::string& cause,
                           Time now) {
  ArrayState& array = get(id);
  put(array, ok ? TaskPartition::Ok : TaskPartition::NotOk, indices);
  if (array.needs_files()) forget_files(array, indices);
  if (!ok) causes_.try_emplace(id, cause);
  note_end(array, indices, cause, now);
}

void TaskTable::note_end(ArrayState& array, std::optional<IndexSet> indices,
                         const std::string& cause, Time at) {
  ++array.unspread;
  ends_.push_back({array.id, std::move(indices), cause, at});
}

void TaskTable::spread_ends() {
  while (!ends_.empty()) {
    const End end = std::move(ends_.front());
    ends_.pop_front();
    --get(end.array).unspread;
    const auto waiting = dependants_.find(end.array);
    if (waiting != dependants_.end()) {
      const std::vector<ArrayId> dependants = waiting->second;
      for (const ArrayId dependant : dependants) {
        const auto at = arrays_.find(dependant);
        if (at != arrays_.end()) spread_to(at->second, end.array, end.indices, end.cause, end.at);
      }
    }
    forget_if_over(end.array);
  }
}

void TaskTable::judge_wait(const Dependency& on, bool is_met, Time begun, Verdicts& verdicts) {
  verdicts.any_met = verdicts.any_met || is_met;
  if (is_met && on.kind == Dependency::Kind::Start) verdicts.begun.push_back({on, begun});
  if (!is_met && on.kind == Dependency::Kind::NotSuccess) verdicts.never = which_succeeded(on);
}

/// Looks at what the state of `ended` means for one array that waits for it.  `news` are the
/// indices that ended since that was done last: looking at them alone keeps a million pairs cheap.
void TaskTable::spread_to(ArrayState& dependant, ArrayId ended, const std::optional<IndexSet>& news,
                          const std::string& cause, Time now) {
  const ArrayState& before = get(ended);
  static const IndexSet kNone;
  const Before facts{before.tasks.all(), before.tasks.ok(), before.tasks.not_ok(),
                     before.rare ? before.rare->started : kNone, before.tasks.is_over()};
  Verdicts verdicts;
  const auto first = causes_.find(ended);
  // Of one that was retried in part the first cause may be one that is mended.
  verdicts.never = cause;
  if (cause.empty() && first != causes_.end()) verdicts.never = first->second;
  if (verdicts.never.empty())
    verdicts.never = std::to_string(ended.value) + ", some of which did not succeed";
  const bool one_will_do = dependant.terms->course->any_of_after;
  auto& all_open = dependant.make_waits().open;
  const auto [first_open, end_open] = all_open.equal_range(ended);
  for (auto at = first_open; at != end_open;) {
    const Dependency& on = at->second.on;
    if (on.kind == Dependency::Kind::EachSuccess) {
      verdicts.doomed.add((news ? facts.not_ok.intersection(*news) : facts.not_ok)
                              .intersection(dependant.tasks.all()));
      ++at;
      continue;
    }
    const Standing standing = standing_of(on, facts);
    if (standing != Standing::Open)
      judge_wait(on, standing == Standing::Met, before.rare ? before.rare->last_start : now,
                 verdicts);
    if (standing == Standing::Never) verdicts.doomed = dependant.tasks.all();
    const bool is_settled =
        standing == Standing::Met || (standing == Standing::Never && one_will_do);
    at = is_settled ? all_open.erase(at) : std::next(at);
  }
  const bool all = !news || verdicts.any_met;
  act_on(dependant, std::move(verdicts), now);
  const IndexSet ready = unblocked(
      dependant, all ? dependant.tasks.blocked() : dependant.tasks.blocked().intersection(*news));
  take_out(dependant, TaskPartition::Blocked, ready);
  make_ready(dependant, ready);
}

void TaskTable::forget_if_over(ArrayId id) {
  ArrayState& array = get(id);
  if (array.unspread != 0 || !array.tasks.is_over()) return;
  if (const auto waiting = dependants_.find(id); waiting != dependants_.end()) {
    for (const ArrayId dependant : waiting->second) {
      const auto at = arrays_.find(dependant);
      if (at == arrays_.end()) continue;
      const auto [first, end] = at->second.make_waits().open.equal_range(id);
      for (auto open = first; open != end; ++open) open->second.known_ok = array.tasks.ok();
    }
    dependants_.erase(waiting);
  }
  causes_.erase(id);
  with_files_.erase(id);
  bounded_.erase(id);
  start_awaited_.erase(id);
  if (array.terms->course->begin) begins_.erase({*array.terms->course->begin, id});
  if (const auto named = singletons_.find(array.terms->course->singleton);
      named != singletons_.end() && named->second.erase(id) != 0 && named->second.empty())
    singletons_.erase(named);
  terms_.release(std::move(array.terms));
  totals_.all -= array.tasks.all().size();
  for (const auto place : {TaskPartition::Ok, TaskPartition::NotOk})
    totals_.at(place) -= array.tasks.in(place).size();
  actions_.push_back(SaveArrayEnded{id});
  arrays_.erase(id);
}

// Arrays of which more tasks fail than their user wants to see.

void TaskTable::count_failures(ArrayState& array, const IndexSet& indices, Failure failure) {
  const std::uint32_t bound = array.terms->give_up_at;
  if (bound == 0 || !is_a_failure_of_its_own(failure)) return;
  IndexSet& failed = array.make_rare().failed;
  failed.add(indices);
  if (failed.size() >= bound) to_give_up_.push_back(array.id);
}

std::optional<std::string> ArrayState::why_given_up() const {
  const std::uint32_t bound = terms->give_up_at;
  if (bound == 0 || !rare || rare->failed.size() < bound) return std::nullopt;
  return fmt::format("{} of submission {} failed, and at most {} may", rare->failed.size(),
                     id.value, bound - 1);
}

IndexSet Engine::started(const ArrayState& array) const {
  IndexSet running;
  for (const IndexRange& range : array.tasks.leased().ranges()) {
    for (std::uint64_t i = range.first; i <= range.last; ++i) {
      const auto index = static_cast<std::uint32_t>(i);
      if (pilots_.lease({array.id, index})->state != Lease::State::Sent)
        running.add(IndexRange{index, index});
    }
  }
  return running;
}

std::string Engine::why_cancelled(TaskId task) const {
  const ArrayState* array = tasks_.find(task.array);
  if (array && array->rare && array->rare->unread_for) return why_unread(*array->rare->unread_for);
  const auto why = array ? array->why_given_up() : std::nullopt;
  return why ? "cancelled, because " + *why : "cancelled by user";
}

void Engine::give_up_arrays(Time now) {
  for (const ArrayId id : tasks_.to_give_up()) {
    const ArrayState* array = tasks_.find(id);
    const auto why = array ? array->why_given_up() : std::nullopt;
    if (!why) continue;
    IndexSet rest = array->tasks.open();
    if (!array->terms->gives_up_running) rest.remove(started(*array));
    cancel_tasks({{id, rest}}, "cancelled, because " + *why, now);
  }
}

// Tasks that their user holds, those too that wait at pilots already.

void Engine::handle(const HoldAsked& event, Time now) {
  std::uint64_t changed = 0;
  std::uint64_t at_pilots = 0;
  for (const Selection& selection : event.tasks) {
    changed += tasks_.hold(selection, event.hold);
    const ArrayState* array = tasks_.find(selection.array);
    if (!array) continue;
    const IndexSet there =
        array->tasks.leased().intersection(selection.indices.value_or(array->tasks.all()));
    if (there.empty()) continue;
    if (event.hold) at_pilots += there.size();
    hold_at_pilots(selection.array, there, event.hold, now);
  }
  actions_.push_back(AnswerCount{event.request, changed, at_pilots});
  work_changed_ = true;
}

void Engine::hold_at_pilots(ArrayId array, const IndexSet& indices, bool hold, Time now) {
  for (auto& [id, pilot] : pilots_.all()) {
    bool any = false;
    for (const TaskId task : pilot.leases) {
      if (task.array != array || !indices.contains(task.index)) continue;
      Lease& lease = *pilots_.lease(task);
      lease.to_hold = hold;
      any = any || (hold && lease.state == Lease::State::Sent && !lease.has_left && !lease.counted);
    }
    if (any) recall_backlog(pilot, now);
  }
}

/// Its pilot gave it back, or never had it.
void Engine::hold_what_came_back() {
  for (const auto& [array, indices] : std::exchange(came_back_held_, {}))
    tasks_.hold({array, indices}, true);
}

// Tasks that wait for starts of others, or that have to end by a moment.

void Engine::note_started(const Lease& lease) {
  const TaskId task = lease.attempt.task;
  if (lease.started && tasks_.is_start_awaited(task.array))
    tasks_.note_started(task.array, IndexRange{task.index, task.index}, *lease.started);
}

/// What has started by now, before those who wait for it are there.
void Engine::note_starts_for(const std::vector<Dependency>& after) {
  for (const Dependency& on : after) {
    const ArrayState* before = tasks_.find(on.array);
    if (on.kind != Dependency::Kind::Start || on.sibling != 0 || !before) continue;
    IndexSet started;
    Time last{};
    for (const IndexRange& range : before->tasks.leased().ranges()) {
      for (std::uint64_t i = range.first; i <= range.last; ++i) {
        const auto index = static_cast<std::uint32_t>(i);
        const Lease* lease = pilots_.lease({on.array, index});
        if (!lease->started) continue;
        started.add(IndexRange{index, index});
        last = std::max(last, *lease->started);
      }
    }
    if (!started.empty()) tasks_.note_started(on.array, started, last);
  }
}

void Engine::end_late_tasks() {
  for (const TaskId task : tasks_.on_time()) {
    Lease& lease = *pilots_.lease(task);
    const PilotState* pilot = pilots_.find(lease.pilot);
    if (lease.told != Failure::Ok || lease.cancelled || !pilot || !pilot->connected) continue;
    lease.told = Failure::DeadlineMissed;
    actions_.push_back(KillAttempt{lease.pilot, lease.attempt, Failure::DeadlineMissed, false});
  }
}

// Tasks whose choices (account, QOS, constraint, reservation) every batch system that they may go to
// refuses for good: they end with its words, instead of waiting for what only a person can mend.

void Engine::end_refused_tasks(Time now) {
  if (!sites_.refuses_any_for_good()) return;
  ReadyQueue& queue = tasks_.queue();
  const std::vector<ClassId> waiting(queue.waiting().begin(), queue.waiting().end());
  for (const ClassId id : waiting) {
    if (queue.get(id).needs.tags.empty()) continue;
    const auto why = sites_.refusal_for_good(queue.get(id).needs);
    if (!why) continue;
    while (queue.get(id).ready != 0) tasks_.end_queued(queue.head_of(id), *why, now);
  }
  tasks_.tell_ended();
}

}  // namespace hpcbatch

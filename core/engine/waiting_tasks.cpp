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

}  // namespace

IndexSet TaskTable::unblocked(const ArrayState& array, const IndexSet& indices) const {
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

// NOLINTNEXTLINE(readability-function-cognitive-complexity)
void TaskTable::attach(ArrayState& array, const EndedFacts& ended, Time now) {
  for (const Dependency& dependency : array.after()) {
    if (find(dependency.array)) {
      array.make_waits().open.emplace(dependency.array, OpenDependency{dependency, std::nullopt});
      std::vector<ArrayId>& waiting = dependants_[dependency.array];
      if (waiting.empty() || waiting.back() != array.id) waiting.push_back(array.id);
      continue;
    }
    const EndedArray* facts = ended.find(dependency.array);
    HPCBATCH_CHECK(facts);
    if (dependency.kind == Dependency::Kind::AnyEnd) continue;
    IndexSet bad = facts->not_ok;
    if (dependency.index) bad = bad.intersection(IndexRange{*dependency.index, *dependency.index});
    IndexSet culprits = bad;
    if (dependency.kind == Dependency::Kind::EachSuccess) {
      array.make_waits().open.emplace(dependency.array, OpenDependency{dependency, facts->ok});
      bad = bad.intersection(array.tasks.all());
      culprits = bad;
    } else if (!bad.empty()) {
      bad = array.tasks.all();
    }
    if (bad.empty()) continue;
    const IndexSet doomed = take_unleased(array, bad);
    const bool by_first = !facts->failed_first.intersection(culprits).empty();
    end_unleased(array.id, doomed,
                 never_started(by_first ? facts->first_cause
                                        : to_string(TaskId{dependency.array,
                                                           culprits.ranges().front().first}) +
                                              ", which had ended without success",
                               now));
  }
  // Only when all are attached: one that is met already must not let the tasks go before the others
  // are.
  for (const Dependency& dependency : array.after()) {
    if (find(dependency.array)) spread_to(array, dependency.array, std::nullopt, "", now);
  }
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

/// Looks at what the state of `ended` means for one array that waits for it.  `news` are the
/// indices that ended since that was done last: looking at them alone keeps a million pairs cheap.
// NOLINTNEXTLINE(readability-function-cognitive-complexity)
void TaskTable::spread_to(ArrayState& dependant, ArrayId ended, const std::optional<IndexSet>& news,
                          const std::string& cause, Time now) {
  const ArrayState& before = get(ended);
  const bool over = before.tasks.is_over();
  IndexSet doomed;
  const auto is_met = [&](const OpenDependency& open) {
    const bool one = open.on.index.has_value();
    const bool one_ok = one && before.tasks.ok().contains(*open.on.index);
    const bool one_bad = one && before.tasks.not_ok().contains(*open.on.index);
    switch (open.on.kind) {
      case Dependency::Kind::AnyEnd:
        return one ? one_ok || one_bad : over;
      case Dependency::Kind::Success:
        if (one ? one_bad : !before.tasks.not_ok().empty()) doomed = dependant.tasks.all();
        return one ? one_ok : over && before.tasks.not_ok().empty();
      case Dependency::Kind::EachSuccess:
        doomed.add((news ? before.tasks.not_ok().intersection(*news) : before.tasks.not_ok())
                       .intersection(dependant.tasks.all()));
        return false;
    }
    return false;
  };
  bool any_met = false;
  auto& all_open = dependant.make_waits().open;
  const auto [first_open, end_open] = all_open.equal_range(ended);
  for (auto at = first_open; at != end_open;) {
    const bool met = is_met(at->second);
    any_met = any_met || met;
    at = met ? all_open.erase(at) : std::next(at);
  }
  if (!doomed.empty()) {
    const auto first = causes_.find(ended);
    // Of one that was retried in part the first cause may be one that is mended.
    const std::string why = !cause.empty() ? cause
                            : first != causes_.end()
                                ? first->second
                                : std::to_string(ended.value) + ", some of which did not succeed";
    const IndexSet hit = take_unleased(dependant, doomed);
    end_unleased(dependant.id, hit, never_started(why, now));
  }
  const bool all = !news || any_met;
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
      lease.to_hold = hold && lease.state == Lease::State::Sent && !lease.has_left;
      any = any || (lease.to_hold && !lease.counted);
    }
    if (any) recall_backlog(pilot, now);
  }
}

/// Its pilot gave it back, or never had it.
void Engine::hold_what_came_back() {
  for (const auto& [array, indices] : std::exchange(came_back_held_, {}))
    tasks_.hold({array, indices}, true);
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

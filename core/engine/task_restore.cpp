// Tasks come back: after a restart of the engine, and when a user runs ended ones again.
#include "engine/task_table.hpp"

#include "model/check.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace hpcbatch {

void TaskTable::remember(const SaveFailedAttempt& failed) {
  TaskHistory& history = histories_[failed.attempt.task];
  history.attempts = std::max(history.attempts, failed.attempt.number);
  if (failed.charged) {
    ++history.charged;
    if (failed.outcome.failure == Failure::OomTask) ++history.ooms;
    if (failed.outcome.failure == Failure::TimeTask) ++history.timeouts;
  } else if (is_not_the_tasks_fault(failed.outcome.failure)) {
    ++history.free[static_cast<std::size_t>(failed.outcome.failure)];
  } else {
    ++history.elsewhere;
  }
  if (!is_not_the_tasks_fault(failed.outcome.failure)) {
    history.unexplained_deaths = 0;
    history.evidence.clear();
  }
  if (failed.unexplained) {
    ++history.unexplained_deaths;
    history.evidence +=
        fmt::format("{}attempt {} on {}: {}", history.evidence.empty() ? "" : "; ",
                    failed.attempt.number, to_string(failed.pilot), failed.outcome.message);
  }
  // Where nothing was guessed, this means nothing.
  if (!failed.charged && may_be_by_guess(failed.outcome.failure)) history.guess_failed = true;
  // How long it ran until it was cut stands for the time it had.
  if (failed.outcome.failure == Failure::PilotWalltime && failed.outcome.started) {
    const Duration had = failed.outcome.ended - *failed.outcome.started;
    history.needs_more_than = std::max(history.needs_more_than.value_or(Duration{}), had);
  }
}

/// What the histories of those indices ask for.
void TaskTable::set_apart_again(ArrayState& array, const IndexSet& indices,
                                std::optional<Duration> longest) {
  for (const IndexRange& range : indices.ranges()) {
    for (std::uint64_t i = range.first; i <= range.last; ++i) {
      const auto index = static_cast<std::uint32_t>(i);
      TaskHistory& history = histories_.at({array.id, index});
      history.guess_failed = history.guess_failed && array.terms->needs.guess.has_value();
      // It was its guess, and no node.
      if (history.guess_failed && history.elsewhere > 0) --history.elsewhere;
      if (!history.needs_more_than && history.unexplained_deaths == 0 && !history.guess_failed &&
          !grown_needs({array.id, index}))
        continue;
      // Pilots are ended late: what it ran may be more than any shape gives.  It was to be tried
      // again, so it can be.
      if (longest) note_longest(history, *longest);
      set_apart(array, index);
    }
  }
}

void TaskTable::restore(const Snapshot& snapshot, const LiveArrays& live_arrays,
                        const std::function<std::optional<Duration>(const Needs&)>& longest) {
  next_array_ = snapshot.next_array;
  std::unordered_map<ArrayId, IndexSet> failed;
  for (const SaveFailedAttempt& attempt : snapshot.failed_attempts) {
    remember(attempt);
    failed[attempt.attempt.task.array].add(attempt.attempt.task.index);
  }
  std::unordered_map<ArrayId, IndexSet> leased;
  for (const StoredLease& lease : snapshot.leases)
    leased[lease.attempt.task.array].add(lease.attempt.task.index);
  const EndedFacts ended(snapshot.ended);
  // Arrays come in the order of their ids, so that a predecessor is there before what waits for it.
  while (const LiveArray* next = live_arrays()) {
    const LiveArray& live = *next;
    ArrayState& array =
        make(live.id, queue_.client_for(live.client), live.array, live.array.indices);
    if (const auto at = failed.find(live.id); at != failed.end()) {
      // What has ended may be run again by the user, who begins with a clean record.
      forget_histories(live.id, at->second.intersection(live.ok));
      forget_histories(live.id, at->second.intersection(live.not_ok));
      at->second.remove(live.ok);
      at->second.remove(live.not_ok);
      set_apart_again(array, at->second, longest(live.array.needs));
    }
    if (!live.failed.empty()) array.make_rare().failed = live.failed;
    IndexSet rest = live.array.indices;
    const auto stands = [&](TaskPartition::Place place, const IndexSet& indices) {
      const IndexSet there = rest.intersection(indices);
      put(array, place, there);
      rest.remove(there);
    };
    stands(TaskPartition::Ok, live.ok);
    stands(TaskPartition::NotOk, live.not_ok);
    if (const auto at = leased.find(live.id); at != leased.end()) {
      stands(TaskPartition::Leased, at->second);
      // Of what it was given before nothing is known.
      if (live.array.streams_input) input_given({live.id, at->second.ranges().front().first});
    }
    stands(TaskPartition::Held, live.held);
    if (!live.not_ok.empty())
      causes_[live.id] = fmt::format("{}, some of which did not succeed", live.id.value);
    place_new(array, rest, false, ended, live.submitted);
    if (!live.ok.empty() || !live.not_ok.empty()) note_end(array, std::nullopt, "", live.submitted);
  }
  spread_ends();
}

void TaskTable::recreate(const RevivedArray& revived) {
  ArrayState& array =
      make(revived.id, queue_.client_for(revived.client), revived.array, revived.all);
  put(array, TaskPartition::Ok, revived.ok);
  put(array, TaskPartition::NotOk, revived.not_ok);
  if (array.terms->give_up_at != 0) array.make_rare().failed = revived.failed;
  put(array, TaskPartition::NotOk, revived.array.indices);
}

NewArray TaskTable::facts_of(const ArrayState& array) {
  const Terms& terms = *array.terms;
  NewArray facts;
  facts.needs = terms.needs;
  facts.priority = terms.priority;
  facts.retries = terms.retries;
  facts.max_running = terms.max_running;
  facts.give_up_at = terms.give_up_at;
  facts.gives_up_running = terms.gives_up_running;
  facts.streams_input = terms.streams_input;
  facts.after = array.after();
  facts.course = terms.course;
  facts.within = terms.within;
  return facts;
}

void TaskTable::change_terms(ArrayState& array, const NewArray& facts) {
  IndexSet ready;
  for (const QueuePlace& place : array.places()) ready.add(queue_.remove(place, array.tasks.all()));
  // What runs is still of that class.
  const ClassId its_class = array.terms->in_class;
  terms_.release(std::exchange(array.terms, terms_.of(facts)));
  add_class(array, its_class);
  if (array.rare) std::erase(array.rare->other_classes, array.terms->in_class);
  if (facts.max_running != 0)
    bounded_.insert(array.id);
  else
    bounded_.erase(array.id);
  if (array.rare) {
    const IndexSet cut = std::exchange(array.rare->cut, {});
    for (const IndexRange& range : cut.ranges()) {
      for (std::uint64_t i = range.first; i <= range.last; ++i)
        set_apart(array, static_cast<std::uint32_t>(i));
    }
  }
  make_ready(array, ready);
}

std::uint64_t TaskTable::revive(const RetryAsked& event, Time now) {
  std::uint64_t changed = 0;
  // All are there before any is placed: a dependant may stand before its cause where ids were given
  // so.
  for (const RevivedArray& revived : event.arrays) {
    if (!find(revived.id)) recreate(revived);
  }
  for (const RevivedArray& revived : event.arrays) {
    ArrayState& array = get(revived.id);
    const IndexSet again = array.tasks.not_ok().intersection(revived.array.indices);
    if (again.empty()) continue;
    if (revived.has_new_needs && array.terms->needs != revived.array.needs) {
      NewArray facts = facts_of(array);
      facts.needs = revived.array.needs;
      change_terms(array, facts);
    }
    take_out(array, TaskPartition::NotOk, again);
    if (array.rare) {
      array.rare->failed.remove(again);
      array.rare->unread_for.reset();
    }
    put(array, TaskPartition::Blocked, again);
    causes_.erase(revived.id);
    changed += again.size();
    for (const auto& [index, attempts] : revived.attempts) {
      if (again.contains(index)) histories_[{revived.id, index}].attempts = attempts;
    }
    actions_.push_back(
        SaveRevived{revived.id, again,
                    revived.has_new_needs ? std::optional(revived.array.needs) : std::nullopt});
  }
  const EndedFacts ended(event.ended);
  for (const RevivedArray& revived : event.arrays) {
    ArrayState& array = get(revived.id);
    if (array.waits) array.waits->open.clear();
    attach(array, ended, now);
    const IndexSet ready = unblocked(array, array.tasks.blocked());
    take_out(array, TaskPartition::Blocked, ready);
    make_ready(array, ready);
    note_end(array, std::nullopt, "", now);
  }
  spread_ends();
  return changed;
}

}  // namespace hpcbatch

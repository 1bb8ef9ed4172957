// What is told of tasks that there are: other terms for those that wait, another run for those that
// run.
#include "engine/engine.hpp"
#include "engine/task_table.hpp"
#include "model/quantities.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <utility>

namespace hpcbatch {

namespace {

NewArray changed(NewArray facts, const TermsChange& change) {
  facts.needs = changed(std::move(facts.needs), change.needs);
  if (change.site) facts.needs.site = *change.site;
  if (change.tags) facts.needs.tags = *change.tags;
  facts.priority = change.priority.value_or(facts.priority);
  facts.retries = change.retries.value_or(facts.retries);
  // A name's tasks run one at a time.
  if (facts.course->singleton.empty())
    facts.max_running = change.max_running.value_or(facts.max_running);
  if (change.after) {
    facts.after = *change.after;
    if (facts.course->any_of_after) facts.course.edit().any_of_after = false;
  }
  if (change.begin) facts.course.edit().begin = change.begin;
  if (change.deadline) facts.course.edit().deadline = change.deadline;
  if (change.requeue) facts.course.edit().no_requeue = !*change.requeue;
  return facts;
}

/// What of it runs has started with the others.
bool is_for_what_waits(TermsChange change) {
  change.priority.reset();
  change.retries.reset();
  change.max_running.reset();
  change.requeue.reset();
  change.name.reset();
  return change.any();
}

/// Only what was submitted before can be waited for: nothing waits for itself, however long the way.
std::optional<std::string> why_no_order(ArrayId id, const std::vector<Dependency>& after) {
  for (const Dependency& on : after) {
    if (on.array < id) continue;
    return fmt::format(
        "cannot let {} wait for {}: a task waits for those alone that were submitted before it",
        id.value, on.array.value);
  }
  return std::nullopt;
}

}  // namespace

std::optional<std::string> TaskTable::why_not_updated(ArrayId id) const {
  const ArrayState* array = find(id);
  if (!array)
    return fmt::format("{} has ended; 'hpcbatch retry' runs it again, with other needs too",
                       id.value);
  IndexSet waiting = array->tasks.open();
  waiting.remove(array->tasks.leased());
  if (!waiting.empty()) return std::nullopt;
  return fmt::format(
      "nothing of {} waits: what a pilot has keeps what it was given; cancel it, and submit it "
      "anew",
      id.value);
}

NewArray TaskTable::updated(ArrayId id, const TermsChange& change) const {
  return changed(facts_of(*find(id)), change);
}

std::uint64_t TaskTable::update(ArrayId id, NewArray facts, const TermsChange& change,
                                const EndedFacts& ended) {
  ArrayState& array = get(id);
  const IndexSet held = array.tasks.held();
  IndexSet waiting = take_unleased(array, array.tasks.all());
  const std::uint64_t changed = waiting.size();
  waiting.remove(held);
  put(array, TaskPartition::Held, held);
  put(array, TaskPartition::Blocked, waiting);
  if (const auto& begin = array.terms->course->begin) begins_.erase({*begin, id});
  change_terms(array, facts);
  if (const auto& begin = facts.course->begin; begin && *begin > now_) begins_.emplace(*begin, id);
  if (facts.course->deadline) watch_deadline(array);
  if (change.after) {
    ArrayState::Waits& waits = array.make_waits();
    waits.after = facts.after;
    waits.open.clear();
  }
  actions_.push_back(SaveTerms{id, std::move(facts), change.name});
  if (change.after) attach(array, ended, now_);
  const IndexSet ready = unblocked(array, array.tasks.blocked());
  take_out(array, TaskPartition::Blocked, ready);
  make_ready(array, ready);
  return changed;
}

void Engine::handle(const UpdateAsked& event, Time) {
  const EndedFacts ended(event.ended);
  const auto refuse = [&](std::string text) {
    actions_.push_back(AnswerRefused{event.request, std::move(text), false});
  };
  std::vector<NewArray> all;
  std::vector<const Needs*> choosing;
  all.reserve(event.arrays.size());
  const bool is_for_waiting = is_for_what_waits(event.change);
  for (const ArrayId id : event.arrays) {
    auto why_not = tasks_.why_not_updated(id);
    if (why_not && (is_for_waiting || !tasks_.find(id))) return refuse(std::move(*why_not));
    NewArray& facts = all.emplace_back(tasks_.updated(id, event.change));
    if (event.change.after) {
      if (auto why = why_no_order(id, facts.after)) return refuse(std::move(*why));
      if (auto why = tasks_.why_not_after(facts, tasks_.find(id)->tasks.all(), ended))
        return refuse(std::move(*why));
    }
    if (!facts.needs.tags.empty()) choosing.push_back(&facts.needs);
  }
  make_shapes_for(choosing);
  for (const NewArray& facts : all) {
    if (auto why = misfit(facts)) return refuse(std::move(*why));
  }
  std::uint64_t changed = 0;
  for (std::size_t i = 0; i < all.size(); ++i) {
    note_starts_for(all[i].after);
    if (!is_for_waiting) changed += tasks_.find(event.arrays[i])->tasks.leased().size();
    changed += tasks_.update(event.arrays[i], std::move(all[i]), event.change, ended);
  }
  tasks_.spread_all_ends();
  tasks_.tell_ended();
  actions_.push_back(AnswerCount{event.request, changed});
  work_changed_ = true;
}

// Tasks that go on in another attempt.

/// It has saved what it had, whoever or whatever asked it to.
bool Engine::asks_to_go_on(TaskId task, const Outcome& outcome) const {
  const std::int32_t code = tasks_.find(task.array)->terms->course->requeue_exit;
  return code != 0 && outcome.exit_code == code && outcome.signal == 0 &&
         outcome.failure != Failure::Ok && outcome.failure != Failure::Cancelled &&
         outcome.failure != Failure::DeadlineMissed;
}

/// A pilot whose end is near is no place to go on.
std::optional<Duration> Engine::left_too_little(const PilotState& pilot, const Outcome& outcome,
                                                Time now) {
  constexpr Duration kNear = std::chrono::minutes{5};
  if (!pilot.end || !outcome.started) return std::nullopt;
  const Duration left = std::max(Duration{}, *pilot.end - now);
  return left < std::min(kNear, outcome.ended - *outcome.started) ? std::optional(left)
                                                                  : std::nullopt;
}

void Engine::handle(const RequeueAsked& event, Time) {
  std::uint64_t told = 0;
  for (const Selection& selection : event.tasks) {
    const ArrayState* array = tasks_.find(selection.array);
    if (!array || array->terms->streams_input) continue;
    const IndexSet there =
        started(*array).intersection(selection.indices.value_or(array->tasks.all()));
    for (const IndexRange& range : there.ranges()) {
      for (std::uint64_t i = range.first; i <= range.last; ++i) {
        Lease& lease = *pilots_.lease({selection.array, static_cast<std::uint32_t>(i)});
        const PilotState* pilot = pilots_.find(lease.pilot);
        const bool can_be_told = pilot && pilot->connected && !lease.has_left && !lease.cancelled;
        if (!can_be_told || lease.told != Failure::Ok) continue;
        lease.told = Failure::Requeued;
        actions_.push_back(KillAttempt{lease.pilot, lease.attempt, Failure::Requeued, false});
        ++told;
      }
    }
  }
  if (told == 0) {
    actions_.push_back(AnswerRefused{
        event.request,
        "none of these tasks runs, or its input cannot be had twice; what waits will start, and "
        "'hpcbatch retry' runs again what has ended",
        false});
    return;
  }
  actions_.push_back(AnswerCount{event.request, told});
}

}  // namespace hpcbatch

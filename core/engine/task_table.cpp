#include "engine/task_table.hpp"

#include "model/batch_number.hpp"
#include "model/check.hpp"
#include "model/quantities.hpp"
#include "planted/planted.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <utility>

namespace hpcbatch {

// Tasks come in, are handed out, and come back.

namespace {

/// What is known of the task after one more try that does not count.
void note_failed(TaskHistory& history, const AttemptId& attempt, const std::string& evidence,
                 const Ending& ending, Verdict verdict, std::optional<Duration> longest) {
  history.attempts = attempt.number;
  if (verdict == Verdict::RetryCharged && !HPCBATCH_PLANTED(retries_not_counted)) ++history.charged;
  const bool is_its_own = !is_not_the_tasks_fault(ending.failure);
  if (ending.guess_failed) history.guess_failed = true;
  if (verdict == Verdict::RetryFree && is_its_own && !ending.guess_failed) {
    ++history.elsewhere;
  } else if (verdict == Verdict::RetryFree && !ending.guess_failed) {
    ++history.free[static_cast<std::size_t>(ending.failure)];
  }
  history.doubted = ending.doubted;
  history.failed_at = ending.failed_at;
  history.keeps_away = ending.keeps_away;
  if (verdict == Verdict::RetryCharged && ending.failure == Failure::OomTask) ++history.ooms;
  if (verdict == Verdict::RetryCharged && ending.failure == Failure::TimeTask) ++history.timeouts;
  // It has ended by itself: it was not this one.
  if (is_its_own) {
    history.unexplained_deaths = 0;
    history.evidence.clear();
  }
  if (ending.unexplained) {
    ++history.unexplained_deaths;
    history.evidence += fmt::format("{}attempt {} on {}", history.evidence.empty() ? "" : "; ",
                                    attempt.number, evidence);
  }
  if (ending.failure == Failure::Requeued) {
    history.needs_more_than = ending.had;
    if (longest) note_longest(history, *longest);
  }
  if (ending.failure == Failure::PilotWalltime && ending.had) {
    history.needs_more_than = std::max(history.needs_more_than.value_or(Duration{}), *ending.had);
    // None has more time where that counts as a retry: then a fresh pilot is enough.
    if (verdict == Verdict::RetryCharged && longest) note_longest(history, *longest);
  }
}

}  // namespace

ArrayState& TaskTable::get(ArrayId id) {
  const auto at = arrays_.find(id);
  HPCBATCH_CHECK(at != arrays_.end());
  return at->second;
}

const ArrayState* TaskTable::find(ArrayId id) const {
  const auto at = arrays_.find(id);
  return at == arrays_.end() ? nullptr : &at->second;
}

std::vector<const Needs*> TaskTable::all_needs() const {
  std::vector<const Needs*> all;
  terms_.each([&](const Terms& terms) { all.push_back(&terms.needs); });
  return all;
}

std::set<TaskId> TaskTable::outer_tasks() const {
  std::set<TaskId> outer;
  terms_.each([&](const Terms& terms) {
    if (terms.within) outer.insert(*terms.within);
  });
  return outer;
}

const TaskHistory* TaskTable::history(TaskId task) const {
  const auto at = histories_.find(task);
  return at == histories_.end() ? nullptr : &at->second;
}

std::optional<TaskId> TaskTable::prime_suspect() const {
  std::optional<TaskId> prime;
  std::uint32_t most = 1;
  for (const auto& [task, history] : histories_) {
    if (history.unexplained_deaths <= most) continue;
    most = history.unexplained_deaths;
    prime = task;
  }
  return prime;
}

ClassId TaskTable::class_of_task(TaskId task) const {
  const auto at = arrays_.find(task.array);
  HPCBATCH_CHECK(at != arrays_.end());
  const ArrayState& array = at->second;
  if (!array.needs_files() && !array.cut().contains(task.index)) return array.terms->in_class;
  // The class was made when the task was to be ready; looking it up again needs no second record of
  // it.
  const auto found = queue_.find_class(needs_of(array, task.index), apart_by(task));
  const auto& others = array.other_classes();
  const bool is_its_own = found && std::find(others.begin(), others.end(), *found) != others.end();
  return is_its_own ? *found : array.terms->in_class;
}

Apart TaskTable::apart_by(TaskId task) const {
  const TaskHistory* past = history(task);
  if (!past) return {};
  return {.not_at = past->keeps_away ? past->failed_at : NodeName{},
          .suspect = static_cast<std::uint8_t>(std::min(past->unexplained_deaths, 2U))};
}

std::optional<std::string> TaskTable::refusal_of(const TasksSubmitted& event,
                                                 const EndedFacts& ended) const {
  if (event.arrays.empty()) return "cannot queue a submission without tasks; name at least one";
  for (std::size_t position = 0; position < event.arrays.size(); ++position) {
    const NewArray& array = event.arrays[position];
    if (array.indices.empty()) return "cannot queue an array that has no index; name at least one";
    for (const Dependency& on : array.after) {
      if (on.sibling > position) {
        return fmt::format(
            "cannot queue task {} of the submission after its task {}: only those that stand "
            "before it can be named",
            position + 1, on.sibling);
      }
      auto why = on.sibling == 0 ? why_not_after(on, array.indices, ended)
                                 : why_not_after(on, array.indices, fmt::format("#{}", on.sibling),
                                                 event.arrays[on.sibling - 1].indices);
      if (why) return why;
    }
  }
  return std::nullopt;
}

std::optional<std::string> TaskTable::why_not_after(const NewArray& facts, const IndexSet& indices,
                                                    const EndedFacts& ended) const {
  for (const Dependency& on : facts.after) {
    if (auto why = why_not_after(on, indices, ended)) return why;
  }
  return std::nullopt;
}

std::optional<std::string> TaskTable::why_not_after(const Dependency& on, const IndexSet& indices,
                                                    const EndedFacts& ended) const {
  const std::string name = std::to_string(on.array.value);
  if (const ArrayState* live = find(on.array))
    return why_not_after(on, indices, name, live->tasks.all());
  const EndedArray* facts = ended.find(on.array);
  if (!facts) return fmt::format("cannot queue tasks after {}: there is no such task", name);
  IndexSet there = facts->ok;
  there.add(facts->not_ok);
  return why_not_after(on, indices, name, there);
}

std::optional<std::string> TaskTable::why_not_after(const Dependency& on, const IndexSet& indices,
                                                    const std::string& name,
                                                    const IndexSet& there) {
  if (on.index && !there.contains(*on.index)) {
    return fmt::format("cannot queue tasks after {}.{}: that array has no such index", name,
                       *on.index);
  }
  if (on.kind != Dependency::Kind::EachSuccess) return std::nullopt;
  IndexSet unpaired = indices;
  unpaired.remove(there);
  if (unpaired.empty()) return std::nullopt;
  return fmt::format(
      "cannot pair tasks with those of {}: it has no index {}; pair arrays with equal indices",
      name, to_string(unpaired));
}

std::optional<std::string> TaskTable::why_no_numbers(const TasksSubmitted& event) const {
  std::uint64_t next = next_array_;
  for (const NewArray& array : event.arrays) {
    const std::uint64_t ids = ids_taken(array.numbered, array.indices);
    if (array.numbered && !batch_number(ArrayId{next}, ids - 1)) {
      return fmt::format(
          "cannot queue tasks that ask for numbers as batch jobs have: there are no more numbers "
          "up to {}; submit a script without lines #SBATCH or #PBS, or begin with an empty store",
          kLastBatchNumber);
    }
    next += ids;
  }
  return std::nullopt;
}

std::optional<std::string> TaskTable::submit(TasksSubmitted&& event, Time now) {
  const EndedFacts ended(event.ended);
  if (auto refusal = refusal_of(event, ended)) return refusal;
  if (auto refusal = why_no_numbers(event)) return refusal;
  const ClientId client = queue_.client_for(event.client);
  SaveArrays save{event.request,
                  event.client,
                  event.key,
                  event.content,
                  now,
                  ArrayId{next_array_},
                  std::move(event.arrays),
                  std::move(event.read_by)};
  std::vector<bool> held;
  held.reserve(save.arrays.size());
  for (NewArray& array : save.arrays) {
    for (Dependency& dependency : array.after) {
      if (const std::uint32_t sibling = std::exchange(dependency.sibling, 0))
        dependency.array = save.id_of(sibling - 1);
    }
    wait_for_singletons(array);
    make(ArrayId{next_array_}, client, array, array.indices);
    next_array_ += ids_taken(array.numbered, array.indices);
    held.push_back(array.held);
  }
  auto at = arrays_.find(save.first);
  // Before what is saved of them: some have ended as soon as they are placed.
  actions_.emplace_back(std::move(save));
  for (const bool is_held : held) {
    place_new(at->second, IndexSet(at->second.tasks.all()), is_held, ended, now);
    ++at;
  }
  spread_ends();
  return std::nullopt;
}

ArrayState& TaskTable::make(ArrayId id, ClientId client, const NewArray& facts,
                            const IndexSet& all) {
  // Most are the newest.
  const auto at = arrays_.emplace_hint(
      arrays_.end(), id,
      ArrayState{
          .id = id, .terms = terms_.of(facts), .client = client, .tasks = TaskPartition(all)});
  if (!facts.after.empty()) at->second.make_waits().after = facts.after;
  if (at->second.needs_files()) with_files_.insert(id);
  if (at->second.terms->max_running != 0) bounded_.insert(id);
  const Course& course = at->second.terms->course.get();
  if (course.begin && *course.begin > now_) begins_.emplace(*course.begin, id);
  if (course.deadline) watch_deadline(at->second);
  if (!course.singleton.empty()) singletons_[course.singleton].insert(id);
  totals_.all += all.size();
  return at->second;
}

void TaskTable::put(ArrayState& array, TaskPartition::Place place, const IndexSet& indices) {
  std::uint64_t& total = totals_.at(place);
  total -= array.tasks.in(place).size();
  array.tasks.add(place, indices);
  total += array.tasks.in(place).size();
}

void TaskTable::take_out(ArrayState& array, TaskPartition::Place place, const IndexSet& indices) {
  std::uint64_t& total = totals_.at(place);
  total -= array.tasks.in(place).size();
  array.tasks.remove(place, indices);
  total += array.tasks.in(place).size();
}

void TaskTable::place_new(ArrayState& array, const IndexSet& indices, bool held,
                          const EndedFacts& ended, Time now) {
  if (held) {
    put(array, TaskPartition::Held, indices);
  } else {
    put(array, TaskPartition::Blocked, indices);
  }
  attach(array, ended, now);
  if (!held) {
    const IndexSet ready = unblocked(array, array.tasks.blocked());
    take_out(array, TaskPartition::Blocked, ready);
    make_ready(array, ready);
  }
}

void TaskTable::make_ready(ArrayState& array, const IndexSet& indices) {
  if (indices.empty()) return;
  // What has come back may have become too late.
  if (array.terms->course->deadline) watch_deadline(array);
  // While as many run as may, what is ready waits beside the order of turns.
  const bool parked = at_its_limit(array);
  const auto add = [&](const QueuePlace& place, const IndexSet& some) {
    parked ? queue_.add_parked(place, some) : queue_.add(place, some);
  };
  if (array.needs_files()) {
    make_ready_by_files(array, indices, add);
    return park_or_unpark(array);
  }
  IndexSet plain = indices;
  const IndexSet cut = indices.intersection(array.cut());
  for (const IndexRange& range : cut.ranges()) {
    for (std::uint64_t i = range.first; i <= range.last; ++i) {
      const TaskId task{array.id, static_cast<std::uint32_t>(i)};
      QueuePlace place = array.place();
      place.in_class = class_of_task(task);
      if (place.in_class == array.terms->in_class) continue;
      plain.remove(task.index);
      add(place, IndexRange{task.index, task.index});
    }
  }
  add(array.place(), plain);
  park_or_unpark(array);
}

bool TaskTable::at_its_limit(const ArrayState& array) {
  return array.terms->max_running != 0 && array.tasks.leased().size() >= array.terms->max_running;
}

void TaskTable::park_or_unpark(ArrayState& array) {
  if (array.terms->max_running == 0) return;
  const bool park = at_its_limit(array);
  for (const QueuePlace& place : array.places()) park ? queue_.park(place) : queue_.unpark(place);
}

TakenTask TaskTable::take(const QueuePlace& place) {
  const TaskId task{place.array, queue_.take(place)};
  ArrayState& array = get(place.array);
  put(array, TaskPartition::Leased, task.index);
  park_or_unpark(array);
  const TaskHistory* past = history(task);
  return {task, past ? past->attempts + 1 : 1};
}

void TaskTable::give_back(TaskId task) {
  ArrayState& array = get(task.array);
  HPCBATCH_CHECK(array.tasks.leased().contains(task.index));
  take_out(array, TaskPartition::Leased, task.index);
  make_ready(array, IndexRange{task.index, task.index});
}

/// It needs more time than the others of its array, is to keep away from a node, or is suspect.
void TaskTable::set_apart(ArrayState& array, std::uint32_t index) {
  array.make_rare().cut.add(index);
  // Those are made as such tasks become ready.
  if (array.needs_files()) return;
  add_class(array, queue_.class_for(needs_of(array, index), apart_by({array.id, index})));
}

void TaskTable::add_class(ArrayState& array, ClassId in_class) {
  if (in_class == array.terms->in_class) return;
  if (std::find(array.other_classes().begin(), array.other_classes().end(), in_class) ==
      array.other_classes().end()) {
    array.make_rare().other_classes.push_back(in_class);
  }
}

bool TaskTable::ended(const AttemptId& attempt, const PilotId& pilot, const std::string& node,
                      Outcome outcome, const Ending& ending, std::optional<Duration> longest) {
  ArrayState& array = get(attempt.task.array);
  HPCBATCH_CHECK(array.tasks.leased().contains(attempt.task.index));
  take_out(array, TaskPartition::Leased, attempt.task.index);

  const auto past = histories_.find(attempt.task);
  const TaskHistory before = past == histories_.end() ? TaskHistory{} : past->second;
  const bool input_gone = fed_.erase(attempt.task) != 0;
  const Verdict verdict = judge(ending, before, array.terms->retries, input_gone, longest);
  if (verdict == Verdict::RetryFree || verdict == Verdict::RetryCharged) {
    TaskHistory& history = histories_[attempt.task];
    note_failed(history, attempt, to_string(pilot) + ": " + outcome.message, ending, verdict,
                longest);
    if (history.needs_more_than || history.guess_failed || history.keeps_away ||
        history.unexplained_deaths != 0 || grown_needs(attempt.task) ||
        array.cut().contains(attempt.task.index)) {
      set_apart(array, attempt.task.index);
    }
    actions_.push_back(SaveFailedAttempt{attempt, pilot, node, std::move(outcome),
                                         verdict == Verdict::RetryCharged, ending.unexplained});
    make_ready(array, IndexRange{attempt.task.index, attempt.task.index});
    return true;
  }
  if (verdict == Verdict::SetAside) {
    outcome.message = fmt::format(
        "set aside: it was running in {} pilots that died without a reason ({}; attempt {} on {}: "
        "{}); "
        "'hpcbatch retry {}' runs it again",
        before.unexplained_deaths + 1, before.evidence, attempt.number, to_string(pilot),
        outcome.message, to_string(attempt.task));
    outcome.failure = Failure::SetAside;
  }
  histories_.erase(attempt.task);
  if (array.rare) array.rare->cut.remove(attempt.task.index);
  const bool ok = outcome.failure == Failure::Ok;
  const std::string cause =
      ok ? "" : fmt::format("{} ({})", to_string(attempt.task), to_string(outcome.failure));
  const Time at = outcome.ended;
  count_failures(array, IndexRange{attempt.task.index, attempt.task.index}, outcome.failure);
  actions_.push_back(SaveResult{attempt, pilot, node, std::move(outcome)});
  to_tell_.push_back(attempt.task.array);
  park_or_unpark(array);
  record_end(attempt.task.array, IndexRange{attempt.task.index, attempt.task.index}, ok, cause, at);
  spread_ends();
  return false;
}

void TaskTable::tell_ended() {
  std::set<ArrayId> told;
  for (const ArrayId id : std::exchange(to_tell_, {})) {
    if (told.insert(id).second) actions_.push_back(TellEnded{id});
  }
}

IndexSet TaskTable::take_unleased(ArrayState& array, const IndexSet& indices) {
  IndexSet taken;
  for (const QueuePlace& place : array.places()) taken.add(queue_.remove(place, indices));
  for (const auto place : {TaskPartition::Blocked, TaskPartition::Held}) {
    const IndexSet there = array.tasks.in(place).intersection(indices);
    take_out(array, place, there);
    taken.add(there);
  }
  return taken;
}

std::vector<TaskId> TaskTable::cancel(const Selection& tasks, const std::string& why, Time now,
                                      std::uint64_t& changed) {
  const auto at = arrays_.find(tasks.array);
  if (at == arrays_.end()) return {};
  ArrayState& array = at->second;
  const IndexSet wanted = tasks.indices.value_or(array.tasks.all()).intersection(array.tasks.all());
  std::vector<TaskId> leased;
  const IndexSet with_pilots = wanted.intersection(array.tasks.leased());
  for (const IndexRange& range : with_pilots.ranges()) {
    for (std::uint64_t i = range.first; i <= range.last; ++i) {
      leased.push_back({tasks.array, static_cast<std::uint32_t>(i)});
    }
  }
  const IndexSet waiting = take_unleased(array, wanted);
  changed += waiting.size() + leased.size();
  Outcome outcome;
  outcome.failure = Failure::Cancelled;
  outcome.message = why;
  outcome.ended = now;
  end_unleased(tasks.array, waiting, outcome);
  spread_ends();
  return leased;
}

void TaskTable::end_queued(const QueuePlace& place, const std::string& why, Time now) {
  const IndexSet there = queue_.remove(place, queue_.queued(place));
  Outcome outcome;
  outcome.failure = Failure::NeverFits;
  outcome.message = why;
  outcome.ended = now;
  end_unleased(place.array, there, outcome);
  spread_ends();
}

std::uint64_t TaskTable::hold(const Selection& tasks, bool hold) {
  const auto at = arrays_.find(tasks.array);
  if (at == arrays_.end()) return 0;
  ArrayState& array = at->second;
  const IndexSet wanted = tasks.indices.value_or(array.tasks.all());
  IndexSet changed;
  if (hold && HPCBATCH_PLANTED(hold_not_heard)) return array.tasks.held().size();
  if (hold) {
    const IndexSet held_before = array.tasks.held();
    changed = take_unleased(array, wanted);
    put(array, TaskPartition::Held, changed);
    put(array, TaskPartition::Held, held_before.intersection(wanted));
    changed.remove(held_before);
  } else {
    changed = array.tasks.held().intersection(wanted);
    take_out(array, TaskPartition::Held, changed);
    const IndexSet ready = unblocked(array, changed);
    IndexSet still_blocked = changed;
    still_blocked.remove(ready);
    put(array, TaskPartition::Blocked, still_blocked);
    make_ready(array, ready);
  }
  actions_.push_back(SaveHold{array.id, array.tasks.held()});
  return changed.size();
}

// NOLINTNEXTLINE(readability-function-cognitive-complexity)
void TaskTable::check_invariants() const {
  queue_.check_invariants();
  HPCBATCH_CHECK(ends_.empty());
  std::map<std::string, std::uint64_t> coming;
  std::uint64_t queued = 0;
  Totals totals;
  for (const auto& [id, array] : arrays_) {
    totals.all += array.tasks.all().size();
    for (const auto& [site, tasks] : array.files_staging()) coming[site] += tasks.size();
    HPCBATCH_CHECK(array.id == id && id.value < next_array_ && array.unspread == 0);
    for (const auto& [before, open] : array.open()) {
      const auto waiting = dependants_.find(before);
      const bool listed =
          waiting != dependants_.end() &&
          std::find(waiting->second.begin(), waiting->second.end(), id) != waiting->second.end();
      // One that had left memory and was revived since is known by what it had reached.
      HPCBATCH_CHECK(open.known_ok || (listed && find(before)));
    }
    IndexSet all;
    std::uint64_t sum = 0;
    const auto count = [&](const IndexSet& set) {
      all.add(set);
      sum += set.size();
    };
    for (const QueuePlace& place : array.places()) {
      const IndexSet* parked = queue_.parked(place);
      const IndexSet there = queue_.queued(place);
      HPCBATCH_CHECK(at_its_limit(array) ? there.empty() : !parked);
      queued += there.size();
      count(there);
      if (parked) count(*parked);
    }
    for (const auto place : {TaskPartition::Blocked, TaskPartition::Held, TaskPartition::Leased,
                             TaskPartition::Ok, TaskPartition::NotOk}) {
      count(array.tasks.in(place));
      totals.at(place) += array.tasks.in(place).size();
    }
    HPCBATCH_CHECK(sum == array.tasks.all().size());
    HPCBATCH_CHECK(all == array.tasks.all());
    // Who is over has left memory; who waits has something to wait for.
    HPCBATCH_CHECK(!array.tasks.is_over());
    HPCBATCH_CHECK(array.tasks.blocked().empty() ||
                   unblocked(array, array.tasks.blocked()).empty());
    HPCBATCH_CHECK(array.terms->max_running == 0 ||
                   array.tasks.leased().size() <= array.terms->max_running);
    HPCBATCH_CHECK(array.cut().intersection(array.tasks.ok()).empty() &&
                   array.cut().intersection(array.tasks.not_ok()).empty());
  }
  HPCBATCH_CHECK(totals == totals_);
  for (const auto& [site, count] : coming_) HPCBATCH_CHECK(coming[site] == count);
  // The queue holds no other tasks than these.
  HPCBATCH_CHECK(queued == queue_.size());
  for (const auto& [id, waiting] : dependants_) HPCBATCH_CHECK(arrays_.contains(id));
  for (const auto& [id, cause] : causes_) HPCBATCH_CHECK(arrays_.contains(id));
  for (const auto& [task, history] : histories_) {
    const ArrayState* array = find(task.array);
    HPCBATCH_CHECK(array && array->tasks.all().contains(task.index));
    HPCBATCH_CHECK(!array->tasks.ok().contains(task.index) &&
                   !array->tasks.not_ok().contains(task.index));
  }
}

}  // namespace hpcbatch

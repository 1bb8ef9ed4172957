// Moments that tasks wait for: when they may begin, by when they must have ended, and starts of
// others.
#include "engine/task_table.hpp"
#include "model/quantities.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace hpcbatch {

bool TaskTable::waits_for_its_time(const ArrayState& array) const {
  const std::optional<Time>& begin = array.terms->course->begin;
  return begin && begins_.contains({*begin, array.id});
}

/// When its tasks can no longer end in time, should they begin then.
Time TaskTable::latest_start(const ArrayState& array) {
  return *array.terms->course->deadline -
         time_to_begin(as_asked(array.terms->needs)).value_or(Duration{});
}

void TaskTable::watch_deadline(const ArrayState& array) {
  deadlines_.emplace(latest_start(array), array.id);
}

bool TaskTable::is_late(TaskId task) const {
  const std::optional<Time>& deadline = find(task.array)->terms->course->deadline;
  return deadline && *deadline <= now_;
}

std::optional<Time> TaskTable::next_moment() const {
  std::optional<Time> next;
  for (const auto* moments : {&begins_, &deadlines_}) {
    if (!moments->empty())
      next = std::min(next.value_or(moments->begin()->first), moments->begin()->first);
  }
  return next;
}

std::vector<TaskId> TaskTable::on_time() {
  while (!begins_.empty() && begins_.begin()->first <= now_) {
    ArrayState& array = get(begins_.begin()->second);
    begins_.erase(begins_.begin());
    const IndexSet ready = unblocked(array, array.tasks.blocked());
    take_out(array, TaskPartition::Blocked, ready);
    make_ready(array, ready);
  }
  std::vector<TaskId> late;
  std::vector<ArrayId> due;
  for (; !deadlines_.empty() && deadlines_.begin()->first <= now_;
       deadlines_.erase(deadlines_.begin()))
    due.push_back(deadlines_.begin()->second);
  for (const ArrayId id : due) {
    const auto at = arrays_.find(id);
    if (at == arrays_.end() || !at->second.terms->course->deadline) continue;
    end_late(at->second, late);
  }
  if (!due.empty()) spread_ends();
  return late;
}

void TaskTable::end_late(ArrayState& array, std::vector<TaskId>& late) {
  const Time deadline = *array.terms->course->deadline;
  // Its terms have changed since this moment was noted.
  if (now_ < latest_start(array)) return watch_deadline(array);
  if (now_ < deadline && !array.tasks.leased().empty()) deadlines_.emplace(deadline, array.id);
  if (now_ >= deadline) {
    for (const IndexRange& range : array.tasks.leased().ranges()) {
      for (std::uint64_t i = range.first; i <= range.last; ++i)
        late.push_back({array.id, static_cast<std::uint32_t>(i)});
    }
  }
  Outcome outcome;
  outcome.failure = Failure::DeadlineMissed;
  outcome.message =
      now_ < deadline
          ? fmt::format("could not end before its deadline: it may take {}, and {} are left",
                        show_duration(*time_to_begin(array.terms->needs)),
                        show_duration(deadline - now_))
          : "did not start before its deadline";
  outcome.ended = now_;
  end_unleased(array.id, take_unleased(array, array.tasks.all()), outcome);
}

void TaskTable::note_started(ArrayId id, const IndexSet& indices, Time at) {
  ArrayState& array = get(id);
  ArrayState::Rare& rare = array.make_rare();
  rare.last_start = std::max(rare.last_start, at);
  IndexSet news = indices;
  news.remove(rare.started);
  if (news.empty()) return;
  rare.started.add(news);
  note_end(array, std::move(news), "", at);
  spread_ends();
}

/// It waits for these no longer, whatever becomes of them, and may begin so long after they did.
void TaskTable::note_begun(ArrayState& array, const std::vector<Begun>& begun) {
  NewArray facts = facts_of(array);
  for (const auto& [on, last] : begun) {
    // Of what ended without a start, or before anybody wanted to know, now counts.
    const Time at = last == Time{} ? now_ : last;
    facts.after.erase(std::find(facts.after.begin(), facts.after.end(), on));
    if (on.delay == Duration{}) continue;
    std::optional<Time>& begin = facts.course.edit().begin;
    begin = std::max(begin.value_or(at + on.delay), at + on.delay);
  }
  // One is enough, and this is it.
  if (array.terms->course->any_of_after) facts.after.clear();
  array.make_waits().after = facts.after;
  if (array.terms->course->begin != facts.course->begin) {
    if (array.terms->course->begin) begins_.erase({*array.terms->course->begin, array.id});
    if (*facts.course->begin > now_) begins_.emplace(*facts.course->begin, array.id);
    change_terms(array, facts);
  }
  actions_.push_back(SaveTerms{array.id, std::move(facts)});
}

void TaskTable::wait_for_singletons(NewArray& array) const {
  const std::string& name = array.course->singleton;
  if (name.empty()) return;
  array.max_running = 1;
  const auto before = singletons_.find(name);
  if (before == singletons_.end()) return;
  for (const ArrayId id : before->second) {
    const Dependency on{.array = id, .index = {}, .kind = Dependency::Kind::AnyEnd};
    if (std::find(array.after.begin(), array.after.end(), on) == array.after.end())
      array.after.push_back(on);
  }
}

}  // namespace hpcbatch

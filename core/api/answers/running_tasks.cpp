#include "api/answers/running_tasks.hpp"

#include "engine/pilot_table.hpp"

namespace hpcbatch {

void RunningTasks::look(const std::unordered_map<TaskId, Lease>& leases) {
  ++looks_;
  const std::uint64_t before = version_++;
  std::size_t seen = 0;
  bool has_changed = false;
  std::vector<RunningTask> begun;
  for (const auto& [task, lease] : leases) {
    if (lease.state == Lease::State::Sent || !lease.started) continue;
    const auto at = running_.find(task);
    if (at == running_.end()) {
      // Which of too many are shown is decided when the room is known.
      if (begun.size() < kMost)
        begun.push_back({task, lease.attempt.number, lease.pilot, *lease.started});
      continue;
    }
    Entry& entry = at->second;
    entry.seen = looks_;
    ++seen;
    if (entry.task.attempt == lease.attempt.number && entry.task.started == *lease.started &&
        entry.task.pilot == lease.pilot)
      continue;
    entry.task = {task, lease.attempt.number, lease.pilot, *lease.started};
    note(task);
    has_changed = true;
  }
  if (seen < running_.size()) {
    for (auto at = running_.begin(); at != running_.end();) {
      if (at->second.seen == looks_) {
        ++at;
        continue;
      }
      note(at->first);
      at = running_.erase(at);
    }
    has_changed = true;
  }
  for (RunningTask& one : begun) {
    if (running_.size() >= kMost) break;
    const TaskId task = one.task;
    running_.emplace(task, Entry{std::move(one), looks_});
    note(task);
    has_changed = true;
  }
  if (!has_changed) version_ = before;
}

void RunningTasks::note(TaskId task) {
  // Whoever has missed more gets all, which is no more than this.
  constexpr std::size_t kKept = 2 * kMost;
  changes_.emplace_back(version_, task);
  if (changes_.size() <= kKept) return;
  forgotten_ = changes_.front().first;
  changes_.pop_front();
}

RunningTasks::Change RunningTasks::since(std::uint64_t version) const {
  Change change;
  if (version < forgotten_ || version > version_) {
    change.is_whole = true;
    for (const auto& [task, entry] : running_) change.running.push_back(entry.task);
    return change;
  }
  std::unordered_set<TaskId> told;
  for (auto at = changes_.rbegin(); at != changes_.rend() && at->first > version; ++at) {
    if (!told.insert(at->second).second) continue;
    const auto now = running_.find(at->second);
    if (now == running_.end())
      change.gone.push_back(at->second);
    else
      change.running.push_back(now->second.task);
  }
  return change;
}

}  // namespace hpcbatch

#include "pilot/processes/task_processes.hpp"

#include "pilot/processes/process_tree.hpp"

#include <unistd.h>

namespace hpcbatch::pilot {
namespace {

constexpr std::size_t kLongestTaskName = 15;  // of a process, in Linux

}  // namespace

void TaskProcesses::started(unsigned slot, pid_t main, std::string task_id, std::string attempt) {
  tasks_[slot] = Task{main, true, std::move(task_id), std::move(attempt), {}};
}

void TaskProcesses::ended(unsigned slot) {
  tasks_.erase(slot);
}

void TaskProcesses::main_ended(unsigned slot) {
  if (const auto at = tasks_.find(slot); at != tasks_.end()) at->second.main_lives = false;
}

int TaskProcesses::task_in_environment(pid_t pid) const {
  const std::string task_id = variable_of(pid, "HPCBATCH_TASK_ID");
  const std::string attempt = variable_of(pid, "HPCBATCH_ATTEMPT");
  for (const auto& [slot, task] : tasks_) {
    if (task_id == task.task_id && attempt == task.attempt) return static_cast<int>(slot);
  }
  return -1;
}

int TaskProcesses::find_task(pid_t orphan) const {
  const auto facts = facts_of(orphan);
  if (!facts || facts->is_zombie || ours_.contains(facts->group)) return -1;
  for (const auto& [slot, task] : tasks_) {
    const auto known = task.known.find(orphan);
    if (known != task.known.end() && known->second == facts->started) return static_cast<int>(slot);
    if (facts->group == task.main) return static_cast<int>(slot);
  }
  if (const int slot = task_in_environment(orphan); slot >= 0) return slot;
  // What stands between Podman and its container has lost its environment; what is in the container
  // has its own.
  for (const pid_t child : children_of(orphan)) {
    if (const int slot = task_in_environment(child); slot >= 0) return slot;
  }
  // A forked process has the environment that its service was started with, and a name that says
  // whose it is.
  if (!variable_of(orphan, "HPCBATCH_SERVICE").empty()) {
    const std::string name = name_of(orphan);
    for (const auto& [slot, task] : tasks_) {
      if (name == ("task " + task.task_id).substr(0, kLongestTaskName))
        return static_cast<int>(slot);
    }
    return -1;
  }
  // It hides well.  It is ended with the last task that it could be of, never instead of another
  // one's.
  if (tasks_.size() == 1) return static_cast<int>(tasks_.begin()->first);
  return -1;
}

std::map<unsigned, std::vector<pid_t>> TaskProcesses::members() {
  std::map<unsigned, std::vector<pid_t>> roots;
  std::map<pid_t, unsigned> mains;
  for (const auto& [slot, task] : tasks_) {
    if (!task.main_lives) continue;
    roots[slot].push_back(task.main);
    mains[task.main] = slot;
  }
  for (const pid_t child : children_of(::getpid())) {
    if (mains.contains(child) || ours_.contains(child)) continue;
    if (const int slot = find_task(child); slot >= 0)
      roots[static_cast<unsigned>(slot)].push_back(child);
  }
  std::map<unsigned, std::vector<pid_t>> members;
  for (const auto& [slot, starts] : roots) {
    Task& task = tasks_[slot];
    std::map<pid_t, std::uint64_t> known;
    for (const pid_t pid : with_descendants(starts)) {
      const auto facts = facts_of(pid);
      if (!facts || facts->is_zombie) continue;
      known[pid] = facts->started;
      members[slot].push_back(pid);
    }
    task.known = std::move(known);
  }
  return members;
}

}  // namespace hpcbatch::pilot

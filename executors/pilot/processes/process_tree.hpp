// Which processes descend from which, as /proc tells it.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include <sys/types.h>

namespace hpcbatch::pilot {

struct ProcessFacts {
  pid_t parent{};
  pid_t group{};
  bool is_zombie{};
  std::uint64_t started{};   // in ticks since the boot: with the number it names a process for good
  std::uint64_t resident{};  // bytes; what it shares with others is counted for each
  std::chrono::microseconds cpu{};  // of it, and of those below it that have ended
};

std::optional<ProcessFacts> facts_of(pid_t pid);

/// Its threads' numbers, its own among them.
std::vector<pid_t> threads_of(pid_t pid);

/// Living and dead children of all threads of a process.
std::vector<pid_t> children_of(pid_t pid);

/// The given processes and everything below them, parents first.
std::vector<pid_t> with_descendants(const std::vector<pid_t>& roots);

/// Its short name, which it may have set itself; empty where there is no such process.
std::string name_of(pid_t pid);

/// What a variable was when the process started; empty where it had none or may not be looked at.
std::string variable_of(pid_t pid, const std::string& name);

/// Resident bytes with each shared page counted in parts, which is exact and dear; 0 where the
/// kernel does not tell.
std::uint64_t proportional_memory(pid_t pid);

// Which processes belong to which task where there are no control groups: also those that left the
// task's process group and session, and those whose parents have ended and that the pilot, as their
// subreaper, has taken over.

class TaskProcesses {
 public:
  /// `task_id` and `attempt` stand in the task's environment as HPCBATCH_TASK_ID and
  /// HPCBATCH_ATTEMPT.
  void started(unsigned slot, pid_t main, std::string task_id, std::string attempt);
  /// Nothing of the task is left.
  void ended(unsigned slot);
  /// A child of the pilot that is no task's (a chore or a service), and what is in its group.
  void ours(pid_t pid) { ours_[pid] = true; }
  void not_ours(pid_t pid) { ours_.erase(pid); }
  bool is_ours(pid_t pid) const { return ours_.contains(pid); }

  /// Living processes of each task.
  std::map<unsigned, std::vector<pid_t>> members();
  /// The main process has ended and was reaped.
  void main_ended(unsigned slot);

 private:
  struct Task {
    pid_t main{};
    bool main_lives{true};
    std::string task_id;
    std::string attempt;
    std::map<pid_t, std::uint64_t> known;  // with the time of its start
  };
  int task_in_environment(pid_t pid) const;
  int find_task(pid_t orphan) const;

  std::map<unsigned, Task> tasks_;
  std::map<pid_t, bool> ours_;
};

}  // namespace hpcbatch::pilot

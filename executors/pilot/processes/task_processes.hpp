// Which processes belong to which task where there are no control groups: also those that left the
// task's process group and session, and those whose parents have ended and that the pilot, as their
// subreaper, has taken over.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace hpcbatch::pilot {

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

// Starts processes: a task's, a script's without an interpreter, a helper's that is waited for.
#pragma once

#include "pilot/base/clock.hpp"
#include "pilot/policy/attempt.hpp"

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <sched.h>
#include <sys/resource.h>
#include <sys/types.h>

namespace hpcbatch::pilot {

// Starts one task's process: its own process group, cpus, control group, directory and
// descriptors.  Like posix_spawn it borrows the pilot's memory until the program starts;
// posix_spawn itself can join no control group.

struct SpawnPlan {
  std::vector<const char*> programs;  // paths, tried in order as a shell tries PATH
  char* const* argv{};
  // A shell, room for the path of a script that names no interpreter, and what follows argv[0].
  char** shell_argv{};
  char* const* environment{};
  const char* directory{};  // null: stay
  int standard_input{-1};
  int standard_output{-1};
  int standard_error{-1};
  int control_group{-1};        // its cgroup.procs, open for writing; -1: none
  const cpu_set_t* cpus{};      // null: as the pilot
  const rlimit* open_files{};   // null: as the pilot
  std::optional<mode_t> umask;  // none: as the pilot
};

/// Returns when the program runs or could not be started.  All signals that the pilot blocks or
/// ignores are as they are by default in the task.  The task is killed when the calling thread
/// ends.
Spawned spawn(const SpawnPlan& plan);

// Whether a task waits for its standard input.  Until one does, nothing is read for it from whoever
// submitted it: the rest of a list in `while read`, what the next command is to have.

/// Threads of a task that sleep in a call which the kernel does not name, as of look after look.  It
/// names none of a thread that falls asleep until its processor has taken it off its queue, which
/// takes a busy one (Linux 6.12, DELAY_DEQUEUE) many milliseconds.
class UnnamedSleeps {
 public:
  /// Whether it has slept so for half a second.  `switches`: how often it was switched away from.
  bool has_lasted(pid_t thread, const std::string& switches, Time now);

 private:
  struct Sleep {
    std::string switches;
    Time since;
  };
  std::map<pid_t, Sleep> sleeps_;
};

/// Whether `root` or a process below it has the pipe with that inode open and waits, by /proc: in
/// read(2), or in poll(2) and its kin, where it may be for the pipe.  A thread whose long wait the
/// kernel does not name counts as one that reads.
bool asks_for_input(pid_t root, ino_t pipe, UnnamedSleeps& unnamed, Time now);

// Runs a program to its end, for those who may wait: processes beside the pilot's loop.

/// Its exit code, -1 where it had none, and the end of what it printed on both streams.  The
/// environment is lines NAME=value.  `each_second` is called while it runs.
std::pair<int, std::string> run_program(const std::vector<std::string>& argv,
                                        const std::vector<std::string>& environment,
                                        const std::function<void()>& each_second = {});

// A script that names no interpreter is run by sh, as every shell and execvp do it.

/// Of `argv`, which ends with a null: sh, room for the script's path, and the arguments.
std::vector<char*> plain_script_argv(const std::vector<char*>& argv);

/// After execve has said ENOEXEC of `path`.  `shell_argv` is of `plain_script_argv`; the path is
/// put into it.  Returns with errno ENOEXEC where it is no script: empty, or a program of another
/// machine (a NUL within its first bytes, as POSIX lets shells tell it).  System calls only.
void become_plain_script(const char* path, char** shell_argv, char* const* environment);

}  // namespace hpcbatch::pilot

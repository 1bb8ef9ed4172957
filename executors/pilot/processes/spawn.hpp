// Starts one task's process: its own process group, cpus, control group, directory and
// descriptors.  Like posix_spawn it borrows the pilot's memory until the program starts;
// posix_spawn itself can join no control group.
#pragma once

#include "pilot/policy/spawned.hpp"

#include <sched.h>
#include <sys/resource.h>
#include <sys/types.h>

#include <optional>
#include <vector>

namespace hpcbatch::pilot {

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

}  // namespace hpcbatch::pilot

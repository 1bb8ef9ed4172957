// Which process has a number, told by when it began: numbers are given anew.
#pragma once

#include <optional>
#include <string>

namespace hpcbatch {

/// Of /proc/PID/stat (proc(5)).
struct ProcessFacts {
  char state{'?'};  ///< Z and X: it has ended
  int parent{0};
  int session{0};
  long long start{0};  ///< field 22, in ticks since the machine came up
};
std::optional<ProcessFacts> facts_of_process(int process);

/// Field 22 of /proc/PID/stat (proc(5)), in ticks since the machine came up; 0 where no process has
/// the number, or one that has ended and was not collected by its parent, who may never do it.
long long start_of_process(int process);

/// Whether the process that had the number when the machine had that boot id, and began then, is
/// still there.
bool is_running(int process, long long start, const std::string& boot);

/// When that was, in seconds since 1970, to the second; 0: not known.
long long time_of_start(long long ticks);

/// Another one after each start of the machine (random(4)); empty: not known.
std::string boot_id();

}  // namespace hpcbatch

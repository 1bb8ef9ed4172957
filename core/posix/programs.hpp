// Other programs: started by posix_spawn(3), waited for so long as they may take, told apart
// when numbers are given anew.
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <vector>

#include <sys/types.h>

namespace hpcbatch {

// What a program was started with and never asked for.

/// Closes every descriptor from `first` on; none of them may be in use, in any thread.  Nothing fails.
void close_from(int first);

// Starts another program by posix_spawn(3).

struct SpawnOptions {
  std::string program{};                                 ///< its path; empty: `argv` says it
  const std::vector<std::string>* environment{nullptr};  ///< lines NAME=value; null: ours
  int input{-1};                                         ///< -1: /dev/null
  int output{-1};                                        ///< -1: ours
  int error{-1};                                         ///< -1: ours
  int handed_over{-1};  ///< another one of ours: its number there is 3
  bool own_group{false};
  bool own_session{false};
  bool unblocks_signals{true};
  bool as_from_a_shell{false};  ///< signals that we ignore end it
};
inline constexpr int kHandedOver = 3;

/// `argv` begins with the program, which is looked for on our PATH where it has no slash.  0, or
/// what errno says: then `pid` is -1.
int spawn_program(const std::vector<std::string>& argv, const SpawnOptions& options, pid_t& pid);

/// Until that child of ours has ended: its status as of waitpid(2).
int wait_for_end(pid_t child);
/// Its exit code, or as shells have it 128 and the signal that ended it.
int shell_code_of(int status);

// Another program's output, for so long as it may take.

struct Ran {
  int status{0};  ///< as of waitpid(2)
  std::string out;
};
/// Environment and standard error are ours, no signal is blocked.  Nothing where it cannot be run,
/// or had not ended in time: it is killed then.
std::optional<Ran> run_in_time(const std::vector<std::string>& argv,
                               std::chrono::milliseconds time);

/// The same for several side by side.
struct Program {
  std::vector<std::string> argv;
  std::vector<std::string> variables;  ///< NAME=value, over our environment
};
std::vector<std::optional<Ran>> run_in_time(const std::vector<Program>& programs,
                                            std::chrono::milliseconds time);

// Which process has a number, told by when it began: numbers are given anew.

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

// Processes of this machine: one that is waited for until a deadline, and one that is talked to.
#pragma once

#include "hpcbatch/command_line.hpp"
#include "hpcbatch/keys.hpp"
#include "hpcbatch/result.hpp"
#include "posix/files.hpp"

#include <array>
#include <chrono>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include <poll.h>
#include <sys/types.h>
#include <unistd.h>

namespace hpcbatch {

using Environment = std::map<std::string, std::string>;

struct Pipe {
  Fd read;  ///< never blocks
  Fd write;
};
Result<Pipe> make_pipe();

enum class AtOurDeath : std::uint8_t { Dies, Lives };

/// Starts a command in a process group of its own with exactly this environment and these three
/// descriptors.  One that is to die with us does so when the thread that started it ends.
Result<pid_t> start_process(const CommandLine& command, const Environment& environment,
                            const std::array<int, 3>& descriptors, AtOurDeath at_our_death);

/// For poll(2): at most a minute.
int milliseconds_until(std::chrono::steady_clock::time_point when);

/// A child that has not been waited for.
class Child {
 public:
  enum class Whom : std::uint8_t { Group, ItselfAlone };
  explicit Child(pid_t process);

  bool has_ended();
  /// 128 + n for signal n; of one that has ended.
  int exit_code() const;
  /// Sleeps until the child ends, one of the others has something, or time is up.
  void wait(std::chrono::steady_clock::time_point until, std::span<pollfd> others) const;
  /// One that even KILL does not end in time (a hanging file system) is left behind.
  void kill(Whom whom);

 private:
  pid_t process_;
  Fd end_;
  int status_{0};
  bool ended_{false};
};

/// Runs argv in a process group of its own, with exactly this environment and no descriptor but the
/// three, until it ends or its deadline kills the group.  Output of processes that it left behind
/// is not waited for.
Result<CommandOutput> run_process(const CommandLine& command, const Environment& environment,
                                  Deadline deadline);

struct TalkingProcess {
  pid_t process{-1};
  Fd stream;  ///< its standard input and output
};
Result<TalkingProcess> open_process(const CommandLine& command, const Environment& environment);

// Variables for commands: those by which clients of batch systems find their system, and those
// of a site's configuration.

// The variables by which the clients of batch systems find their system.

inline constexpr std::array kBatchVariables{
    "SLURM_CONF", "PBS_CONF_FILE",    "PBS_EXEC",   "PBS_SERVER", "PBS_DEFAULT", "SGE_ROOT",
    "SGE_CELL",   "SGE_CLUSTER_NAME", "LSF_ENVDIR", "LSF_BINDIR", "LSF_LIBDIR",  "LSF_SERVERDIR"};

// Variables that a site's configuration gives to every command there.

bool is_variable_name(std::string_view name);

/// Of the key `environment`; throws as Keys does.
Environment read_environment(const Keys& keys);

}  // namespace hpcbatch

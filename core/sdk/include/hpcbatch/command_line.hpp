// A command and what it answered: the currency between schedulers, which write commands, and
// transports, which run them.
#pragma once

#include <chrono>
#include <map>
#include <string>
#include <vector>

namespace hpcbatch {

/// What to run.  Never a shell string: who needs a shell names it.  `environment` is added to the
/// transport's own minimal one.
struct CommandLine {
  std::vector<std::string> argv;
  std::map<std::string, std::string> environment;
  std::string input;  ///< given on standard input
};

/// How a command ended.  `exit_code` is 128 + n for signal n; it is -1, with `timed_out`, where the
/// deadline passed and the command was killed: what it did by then is unknown.
struct CommandOutput {
  int exit_code{0};
  bool timed_out{false};
  std::string standard_output;
  std::string standard_error;
};

/// The point in time after which a caller no longer waits.
using Deadline = std::chrono::steady_clock::time_point;

}  // namespace hpcbatch

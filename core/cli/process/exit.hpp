// How a command of the command line ends: the exit codes that scripts rely on, and the one sentence
// that goes with them.
#pragma once

#include <stdexcept>
#include <string>

namespace hpcbatch {

inline constexpr int kExitDone = 0;
inline constexpr int kExitTaskFailed = 1;
inline constexpr int kExitUsage = 2;         ///< usage or bad input
inline constexpr int kExitNoEngine = 3;      ///< the engine cannot be reached
inline constexpr int kExitTimedOut = 124;    ///< `wait --timeout`, as of timeout(1)
inline constexpr int kExitOwnFailure = 125;  ///< `run` only: hpcbatch itself failed
inline constexpr int kExitInterrupted = 130;
inline constexpr int kExitOutputClosed = 141;  ///< as a shell tells SIGPIPE

/// Ends the command: `what()` is printed after `hpcbatch: `.
class CommandError : public std::runtime_error {
 public:
  CommandError(int exit_code, const std::string& text)
      : std::runtime_error(text), exit_code_(exit_code) {}
  int exit_code() const { return exit_code_; }

 private:
  int exit_code_;
};

/// The user pressed Ctrl-C while a command waited.
struct InterruptedByUser {};

}  // namespace hpcbatch

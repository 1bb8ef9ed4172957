// How a command of the command line ends: the exit codes that scripts rely on, and the one sentence
// that goes with them.
#pragma once

#include "documents/state_paths.hpp"
#include "posix/files.hpp"

#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include <signal.h>

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

// Ctrl-C and its relatives as something that can be waited for, so that no wait has to be cut off
// by a handler.

/// While it lives, SIGINT, SIGTERM and SIGHUP (those that our parent does not have us ignore) no
/// longer end the process but make `descriptor` readable.  Threads started meanwhile inherit that.
class Interrupt {
 public:
  Interrupt();
  ~Interrupt();
  Interrupt(const Interrupt&) = delete;
  Interrupt& operator=(const Interrupt&) = delete;

  int descriptor() const { return descriptor_.get(); }
  /// They end the process again, and whatever program it becomes.
  void let_through() const;
  /// The signal that came, taken off; 0 where none did.
  int take();
  /// Waits that long; throws InterruptedByUser where a signal comes first.
  void pause(std::chrono::milliseconds time) const;

 private:
  sigset_t before_{};
  Fd descriptor_;
};

// Says what is waited for where a step takes long that nothing can interrupt: a file system that
// hangs answers nobody.

/// `tell` is called with `text`, in a thread of its own, once this has lived for `patience`.
class SlowNote {
 public:
  using Tell = std::function<void(const std::string& text)>;
  static constexpr std::chrono::seconds kPatience{10};

  /// On standard error: "hpcbatch: waits for TEXT".
  explicit SlowNote(std::string text) : SlowNote(std::move(text), kPatience, on_standard_error) {}
  /// `every`: then again and again.
  SlowNote(std::string text, std::chrono::milliseconds patience, Tell tell,
           std::optional<std::chrono::milliseconds> every = {});

 private:
  static void on_standard_error(const std::string& text);

  std::jthread thread_;
};

// The caller's directory and environment, as they are handed on to tasks.

/// A task of ours in which this process runs, as its pilot named them.
struct OwnTask {
  std::string task;
  std::string pilot;
};

struct Surroundings {
  std::string directory;  ///< absolute
  EnvironmentMap environment;
  std::uint32_t umask{022};
  std::optional<OwnTask> within{};
};

/// This process's environment, all of it.
EnvironmentMap own_environment();

/// What a task is given of `environment`: not what the shell keeps for itself, nor what a task or
/// batch job in which the caller runs was given (TMPDIR, HPCBATCH_TASK_ID, SLURM_JOB_ID and the
/// like).
EnvironmentMap handed_on(const EnvironmentMap& environment);
/// What tasks get of whom nothing is known: HOME, PATH, USER, LANG and the like.
bool is_of_any_program(std::string_view name);

std::optional<OwnTask> own_task(const EnvironmentMap& environment);

std::uint32_t own_umask();

/// Throws CommandError where the current directory is gone.
Surroundings look_around();

/// `shell:NAME`: the client as which this user's commands submit, by his uid: a key that is given
/// again by cron, where USER is not set, is the same.
std::string client_name();

// Base64 back to bytes: how the engine sends output that need not be text.

/// No value where the text is not base64 with padding.
std::optional<std::string> decode_base64(std::string_view text);

}  // namespace hpcbatch

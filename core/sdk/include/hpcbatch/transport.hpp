// The interface of a transport plugin: runs commands on one site, and opens streams to them.
#pragma once

#include "hpcbatch/command_line.hpp"
#include "hpcbatch/plugin.hpp"
#include "hpcbatch/result.hpp"

namespace hpcbatch {

/// Calls block until done or until their deadline; one object is used by one thread at a time, and may be
/// left behind in the middle of a call.  A stream is used by any thread.  The process ignores SIGPIPE.
class Transport {
 public:
  static constexpr hpcbatch_plugin_kind kKind = HPCBATCH_KIND_TRANSPORT;
  Transport() = default;
  Transport(const Transport&) = delete;
  Transport& operator=(const Transport&) = delete;
  virtual ~Transport() = default;

  /// Runs a command with a minimal environment (HOME, PATH, USER, LC_ALL=C and the command's own).
  /// A command that ran and failed is no error; one that outlives the deadline is killed and says
  /// `timed_out`.
  /// An error of kind `Rejected` says that nothing was run.
  virtual Result<CommandOutput> run(const CommandLine& command, Deadline deadline) = 0;
  /// Starts a program there whose standard input and output become a byte stream; nobody hears its
  /// standard error.  Returns a descriptor that the caller owns, polls, and may use after the transport has
  /// done other calls; closing it ends the program's input.  `command.input` is not used.
  virtual Result<int> open(const CommandLine& command, Deadline deadline) = 0;
};

/// Beside Transport where the site's paths are this machine's: then its files are read and written in
/// place.
class SharedFileSystem {
 public:
  SharedFileSystem() = default;
  SharedFileSystem(const SharedFileSystem&) = delete;
  SharedFileSystem& operator=(const SharedFileSystem&) = delete;
  virtual ~SharedFileSystem() = default;
};

}  // namespace hpcbatch

#define HPCBATCH_TRANSPORT(Concrete, name, version) \
  HPCBATCH_PLUGIN_(hpcbatch::Transport, Concrete, HPCBATCH_KIND_TRANSPORT, name, version)

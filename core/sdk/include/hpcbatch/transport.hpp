// The interface of a transport plugin: the hands on one site, which run commands and move files
// there.
#pragma once

#include "hpcbatch/command_line.hpp"
#include "hpcbatch/plugin.hpp"
#include "hpcbatch/result.hpp"

#include <cstdint>
#include <string>
#include <vector>

namespace hpcbatch {

/// One file to copy, with the mode that it gets at its destination.
struct Copy {
  std::string from;
  std::string to;
  std::uint32_t mode{0600};
};

/// One file to write from memory.
struct FileText {
  std::string path;
  std::string text;
  std::uint32_t mode{0600};
};

/// A long-lived byte stream to a program on the site; the caller owns the descriptor and polls it.
struct ByteStream {
  int descriptor{-1};
  bool wants_pump{false};  ///< the plugin must be given a thread in `pump` for bytes to move
};

/// Asks one site for files and runs commands there.  Calls block until done or until their
/// deadline; one object is used by one thread at a time, and may be left behind in the middle of a
/// call.  Every call either happened or reports an error; those that change something are safe to
/// repeat.  The process ignores SIGPIPE.
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
  /// Makes each destination appear whole or not at all; parent directories are made, mode 0700.
  virtual Result<void> put(const std::vector<Copy>& files, Deadline deadline) = 0;
  virtual Result<void> put_text(const std::vector<FileText>& files, Deadline deadline) = 0;
  virtual Result<void> get(const std::vector<Copy>& files, Deadline deadline) = 0;
  /// Up to `length` bytes from `offset`; fewer at the file's end.
  virtual Result<std::string> read(const std::string& path, std::uint64_t offset,
                                   std::uint64_t length, Deadline deadline) = 0;
  /// Names in a directory, none of them `.` or `..`; an absent directory is empty.
  virtual Result<std::vector<std::string>> list(const std::string& directory,
                                                Deadline deadline) = 0;
  /// Removes files and whole directories; what is already gone is no error.
  virtual Result<void> remove(const std::vector<std::string>& paths, Deadline deadline) = 0;
  /// Starts a program whose standard input and output become the stream.
  virtual Result<ByteStream> open(const CommandLine& command, Deadline deadline) = 0;
  /// Moves bytes of a stream that `wants_pump`, until it is closed.
  virtual void pump(int descriptor) = 0;
};

}  // namespace hpcbatch

#define HPCBATCH_TRANSPORT(Concrete, name, version) \
  HPCBATCH_PLUGIN_(hpcbatch::Transport, Concrete, HPCBATCH_KIND_TRANSPORT, name, version)

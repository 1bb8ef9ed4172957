// One worker of a service that answers: a process in a group of its own, and lines to and from it.
#pragma once

#include "pilot/base/clock.hpp"
#include "pilot/base/loop.hpp"
#include "posix/files.hpp"

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include <sys/types.h>

namespace hpcbatch::pilot {

// What is said between a service that answers and its workers: one JSON object a line, on the
// worker's standard input, which is a socket (docs/formats.md).

/// Bytes of names and values go as they are, also where they are no UTF-8.
struct RequestWords {
  std::string id;
  std::vector<std::string> argv;
  std::string directory;
  std::map<std::string, std::string> environment;  ///< what the worker's own does not say
};

/// With its end of line.
std::string batch_line(const std::vector<RequestWords>& requests);
std::string cancel_line(const std::string& id);

struct WorkerStarts {};
struct WorkerIsReady {};
struct WorkerRenews {};
struct WorkerOutput {
  std::string id;
  bool is_error{false};
  std::string text;
};
struct WorkerAnswer {
  std::string id;
  int exit_code{0};
};
struct NotUnderstood {
  std::string why;
};
using WorkerWord = std::variant<WorkerStarts, WorkerIsReady, WorkerRenews, WorkerOutput,
                                WorkerAnswer, NotUnderstood>;

/// Without its end of line.
WorkerWord read_word(std::string_view line);

/// What it and all below it have used.
struct WorkerUse {
  std::chrono::microseconds cpu{};
  std::uint64_t memory{};  // resident now
};

class WorkerProcess {
 public:
  struct Callbacks {
    std::function<void(const std::string& line)> line;
    /// It reads and says nothing more: it has ended, or is as good as that.
    std::function<void()> closed;
  };

  /// Throws std::system_error where it cannot be started.  `variables` go over this process's own.
  WorkerProcess(Loop& loop, const std::vector<std::string>& command,
                const std::map<std::string, std::string>& variables, Callbacks callbacks);
  /// Kills what is left of it.
  ~WorkerProcess();
  WorkerProcess(const WorkerProcess&) = delete;
  WorkerProcess& operator=(const WorkerProcess&) = delete;

  void send(const std::string& line);
  /// While somebody downstream is slow.
  void pause(bool is_paused);
  /// Runs on these and no others, with all its threads.
  void bind_to(const std::vector<unsigned>& cpus) const;
  WorkerUse use() const;
  /// Kills it and waits for it; how it ended.
  std::string end();
  /// Whether its process has ended; its socket may be held open by what it has forked.
  bool has_ended() const;
  /// A piece of what it has said; false: there is none yet.  May call `closed`.
  bool read();

 private:
  void ready(std::uint32_t events);
  void write();
  void listen();

  Loop& loop_;
  Callbacks callbacks_;
  pid_t pid_{-1};
  Fd socket_;
  std::string incoming_, outgoing_;
  bool is_paused_{false};
  bool is_closed_{false};
};

}  // namespace hpcbatch::pilot

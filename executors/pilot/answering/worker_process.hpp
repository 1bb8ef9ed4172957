// One worker of a service that answers: a process in a group of its own, and lines to and from it.
#pragma once

#include "pilot/base/loop.hpp"
#include "pilot/base/time.hpp"
#include "posix/fd.hpp"

#include <sys/types.h>

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

namespace hpcbatch::pilot {

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

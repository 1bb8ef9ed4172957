// Processes of this machine: one that is waited for until a deadline, and one that is talked to.
#pragma once

#include "hpcbatch/command_line.hpp"
#include "hpcbatch/result.hpp"

#include <map>
#include <string>
#include <utility>

#include <sys/types.h>
#include <unistd.h>

namespace hpcbatch {

/// A descriptor that is closed with its owner.
class Fd {
 public:
  explicit Fd(int fd = -1) noexcept : fd_(fd) {}
  Fd(Fd&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  Fd& operator=(Fd&& other) noexcept {
    std::swap(fd_, other.fd_);
    return *this;
  }
  ~Fd() { close(); }
  int get() const { return fd_; }
  int release() { return std::exchange(fd_, -1); }
  void close() {
    if (fd_ >= 0) ::close(std::exchange(fd_, -1));
  }

 private:
  int fd_;
};

using Environment = std::map<std::string, std::string>;

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

}  // namespace hpcbatch

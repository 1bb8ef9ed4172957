// Work that may take long (copying outputs, removing trees) in a process of its own, so that the
// pilot's loop goes on.
#pragma once

#include "posix/files.hpp"

#include <sys/types.h>

#include <functional>
#include <map>
#include <string>
#include <utility>

namespace hpcbatch::pilot {

class Helpers {
 public:
  /// `started` and `done` hear of the process.
  explicit Helpers(std::function<void(pid_t)> started) : started_(std::move(started)) {}

  /// `work` runs in a child and returns what `done` gets here; where the child dies instead, `done`
  /// gets `died`.
  void start(const std::function<std::string()>& work, std::string died,
             std::function<void(const std::string&)> done);
  /// A child of the pilot was reaped: true if it was one of these.
  bool reaped(pid_t pid, int status);
  bool any() const { return !running_.empty(); }

 private:
  struct Helper {
    Fd answer;
    std::string died;
    std::function<void(const std::string&)> done;
  };
  std::function<void(pid_t)> started_;
  std::map<pid_t, Helper> running_;
};

}  // namespace hpcbatch::pilot

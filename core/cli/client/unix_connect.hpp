// Connects to a Unix socket whose path may be of any length, and only to one of our own user.
#pragma once

#include "posix/fd.hpp"

#include <chrono>
#include <string>

namespace hpcbatch {

struct Connected {
  Fd socket;                ///< does not block
  int error{0};             ///< errno where there is none
  bool is_anothers{false};  ///< somebody else's process listens there: not connected
};

/// Gives up at `deadline` (ETIMEDOUT) or when `interrupt` becomes readable (EINTR).
Connected connect_unix(const std::string& path, std::chrono::steady_clock::time_point deadline,
                       int interrupt);

}  // namespace hpcbatch

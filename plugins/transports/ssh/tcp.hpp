// A TCP connection that is made within a deadline and does not stay when its other end is gone.
#pragma once

#include "../common/process.hpp"

#include "hpcbatch/command_line.hpp"

#include <chrono>
#include <string>

namespace hpcbatch {

/// `target` is what errors call it.  The look-up of the name alone cannot be cut short.
Result<Fd> connect_tcp(const std::string& host, int port, const std::string& target,
                       std::chrono::seconds keep_alive, Deadline deadline);

}  // namespace hpcbatch

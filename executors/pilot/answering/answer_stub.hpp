// The process of a task whose service answers: it is the pilot's child, has the task's streams,
// limits and control group, and waits for what the service's worker says.  Whoever ends it ends the
// request.
#pragma once

#include "pilot/services/service_socket.hpp"
#include "posix/files.hpp"

#include <string>
#include <string_view>
#include <vector>

namespace hpcbatch::pilot {

/// What a stub is told: packets of a kind and what belongs to it.
enum class StubWord : char {
  Output = 'o',
  Error = 'e',
  Exit = 'x',   ///< with this code, in digits
  Fail = 'f',   ///< for this reason
  Plain = 'p',  ///< become the command, for this reason
};
/// So much of output at most in one packet.
constexpr std::size_t kLargestStubPacket = std::size_t{32} << 10;

/// Where a task's failure is the service's, and there is no code of its own (sysexits.h:
/// EX_SOFTWARE).
constexpr int kFailedInService = 70;

struct StubDescriptors {
  int reply{-1};  ///< the pilot's socket of this request
  int input{-1}, output{-1}, error{-1};
  int control_group{-1};  ///< -1: none
};

/// Forks the stub so that it becomes the pilot's child, and returns the socket on which it is told
/// its words and says the number of its process, in digits, once it was let go.  No socket where
/// it cannot be forked; errno is set.
Fd fork_stub(const ServiceRequest& request, const std::vector<std::string>& environment,
             const StubDescriptors& descriptors);

}  // namespace hpcbatch::pilot

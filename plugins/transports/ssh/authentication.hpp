// How a server is shown who we are: keys from files and from the agent, nothing that a person
// would have to type.
#pragma once

#include "../common/process.hpp"
#include "session.hpp"

#include <libssh/libssh.h>

#include <chrono>
#include <condition_variable>
#include <mutex>
#include <thread>

namespace hpcbatch {

Result<void> authenticate(Session& session, const SshSettings& settings, Deadline deadline);

// A connection to the user's ssh-agent that ends where the agent does not answer: libssh would wait
// for it without end (a forwarded agent whose machine sleeps, one that asks a person who is away).

class AgentSocket {
 public:
  /// To the agent that SSH_AUTH_SOCK names now.
  explicit AgentSocket(std::chrono::steady_clock::time_point until);
  AgentSocket(const AgentSocket&) = delete;
  AgentSocket& operator=(const AgentSocket&) = delete;
  ~AgentSocket();

  /// False where there is no agent.
  bool lend_to(ssh_session session);
  /// It has not answered in time, and was hung up on.
  bool was_shut();

 private:
  Fd ours_;  // the same connection as the session's
  std::chrono::steady_clock::time_point until_;
  std::mutex mutex_;
  std::condition_variable changed_;
  bool is_over_{false};
  bool was_shut_{false};
  std::thread watch_;
};

}  // namespace hpcbatch

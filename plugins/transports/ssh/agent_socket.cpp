#include "agent_socket.hpp"

#include "posix/socket_path.hpp"

#include <cstdlib>
#include <string>

#include <fcntl.h>
#include <sys/socket.h>
#include <unistd.h>

namespace hpcbatch {
namespace {

Fd connect_to_agent() {
  const char* path = std::getenv("SSH_AUTH_SOCK");
  if (path == nullptr) return Fd();
  const SocketPath reachable = socket_path(path);
  if (reachable.error != 0) return Fd();
  const sockaddr_un address = address_of(reachable);
  // Not waiting for one that takes nobody any more.
  Fd socket(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (socket.get() < 0 ||
      ::connect(socket.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0)
    return Fd();
  return socket;
}

}  // namespace

AgentSocket::AgentSocket(std::chrono::steady_clock::time_point until)
    : ours_(connect_to_agent()), until_(until) {}

bool AgentSocket::lend_to(ssh_session session) {
  if (ours_.get() < 0) return false;
  const int theirs = ::fcntl(ours_.get(), F_DUPFD_CLOEXEC, 0);
  if (theirs < 0) return false;
  if (ssh_set_agent_socket(session, theirs) != SSH_OK) {
    ::close(theirs);
    return false;
  }
  watch_ = std::thread([this] {
    std::unique_lock lock(mutex_);
    if (changed_.wait_until(lock, until_, [this] { return is_over_; })) return;
    was_shut_ = true;
    ::shutdown(ours_.get(), SHUT_RDWR);
  });
  return true;
}

bool AgentSocket::was_shut() {
  const std::lock_guard lock(mutex_);
  return was_shut_;
}

AgentSocket::~AgentSocket() {
  {
    const std::lock_guard lock(mutex_);
    is_over_ = true;
  }
  changed_.notify_one();
  if (watch_.joinable()) watch_.join();
}

}  // namespace hpcbatch

#include "cli/client/unix_connect.hpp"

#include "posix/socket_path.hpp"

#include <algorithm>
#include <cerrno>

#include <poll.h>
#include <sys/socket.h>

namespace hpcbatch {
namespace {

/// The engine reads its connections quickly; a full backlog is a matter of milliseconds.
constexpr std::chrono::milliseconds kRetryAfter{10};

bool is_our_users(int socket) {
  ucred peer{};
  socklen_t size = sizeof peer;
  return ::getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &peer, &size) == 0 &&
         peer.uid == ::geteuid();
}

}  // namespace

Connected connect_unix(const std::string& path, std::chrono::steady_clock::time_point deadline,
                       int interrupt) {
  const SocketPath reachable = socket_path(path);
  if (reachable.error != 0) return {{}, reachable.error};
  const sockaddr_un address = address_of(reachable);

  Fd connection(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!connection) return {{}, errno};
  while (::connect(connection.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) !=
         0) {
    if (errno != EAGAIN && errno != EINTR) return {{}, errno};
    if (std::chrono::steady_clock::now() >= deadline) return {{}, ETIMEDOUT};
    pollfd signals{interrupt, POLLIN, 0};
    if (::poll(&signals, 1, static_cast<int>(kRetryAfter.count())) > 0) return {{}, EINTR};
  }
  if (!is_our_users(connection.get())) return {{}, EACCES, true};
  return {std::move(connection), 0};
}

}  // namespace hpcbatch

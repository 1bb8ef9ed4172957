#include "tcp.hpp"

#include "../common/login_errors.hpp"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <memory>

#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

namespace hpcbatch {
namespace {

using Clock = std::chrono::steady_clock;

void set(int socket, int level, int option, int value) {
  (void)::setsockopt(socket, level, option, &value, sizeof value);
}

/// Between calls nobody of ours looks after the connection; the kernel does.
void keep_alive(int socket, std::chrono::seconds every) {
  const int seconds = static_cast<int>(every.count());
  set(socket, SOL_SOCKET, SO_KEEPALIVE, 1);
  set(socket, IPPROTO_TCP, TCP_KEEPIDLE, seconds);
  set(socket, IPPROTO_TCP, TCP_KEEPINTVL, seconds);
  set(socket, IPPROTO_TCP, TCP_KEEPCNT, 3);
  set(socket, IPPROTO_TCP, TCP_USER_TIMEOUT, 3000 * seconds);
  set(socket, IPPROTO_TCP, TCP_NODELAY, 1);
}

/// 0, or why it could not connect.
int connect_one(const Fd& to, const addrinfo& address, Deadline deadline) {
  if (::connect(to.get(), address.ai_addr, address.ai_addrlen) == 0) return 0;
  if (errno != EINPROGRESS) return errno;
  for (;;) {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - Clock::now()).count();
    if (left <= 0) return ETIMEDOUT;
    pollfd wait{to.get(), POLLOUT, 0};
    if (::poll(&wait, 1, static_cast<int>(std::min<decltype(left)>(left, 60'000))) <= 0) continue;
    int error = 0;
    socklen_t size = sizeof error;
    ::getsockopt(to.get(), SOL_SOCKET, SO_ERROR, &error, &size);
    return error;
  }
}

Error connect_error(const std::string& target, int error) {
  switch (error) {
    case ECONNREFUSED:
      return login_errors::refused(target);
    case ETIMEDOUT:
      return login_errors::timed_out(target, "while connecting");
    case EHOSTUNREACH:
    case ENETUNREACH:
      return login_errors::no_route(target, std::strerror(error));
    default:
      return login_errors::other(target, std::strerror(error));
  }
}

}  // namespace

Result<Fd> connect_tcp(const std::string& host, int port, const std::string& target,
                       std::chrono::seconds keep_alive_every, Deadline deadline) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  const int failure = ::getaddrinfo(host.c_str(), std::to_string(port).c_str(), &hints, &found);
  if (failure != 0) return login_errors::name_not_known(target, ::gai_strerror(failure));
  const std::unique_ptr<addrinfo, decltype(&::freeaddrinfo)> all(found, &::freeaddrinfo);
  int left = 0;
  for (const addrinfo* address = found; address != nullptr; address = address->ai_next) ++left;
  int error = EHOSTUNREACH;
  for (const addrinfo* address = found; address != nullptr; address = address->ai_next, --left) {
    // One that does not answer must leave time for the others.
    const auto now = std::chrono::steady_clock::now();
    const Deadline share = now + (deadline - now) / left;
    Fd to(::socket(address->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
    if (to.get() < 0) continue;
    error = connect_one(to, *address, share);
    if (error != 0) continue;
    keep_alive(to.get(), keep_alive_every);
    return to;
  }
  return connect_error(target, error);
}

}  // namespace hpcbatch

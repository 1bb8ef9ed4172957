#include "pilot/link/connect.hpp"

#include "pilot/base/socket_address.hpp"
#include "posix/socket_path.hpp"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <cerrno>
#include <cstring>
#include <string>

namespace hpcbatch::pilot {
namespace {

struct Target : SocketAddress {
  Fd folder;  // held open while a long path is reached through it
};

Error error_at(const wire::Address& address, const std::string& why) {
  return Error{Error::Kind::Transient, to_text(address) + ": " + why};
}

Result<Target> unix_address(const wire::Address& address) {
  Target result;
  SocketPath reachable = socket_path(address.place);
  if (reachable.error != 0) return error_at(address, std::strerror(reachable.error));
  result.folder = std::move(reachable.folder);
  const sockaddr_un plain = address_of(reachable);
  std::memcpy(&result.bytes, &plain, sizeof plain);
  result.length = sizeof plain;
  return result;
}

Result<Target> tcp_address(const wire::Address& address) {
  const auto found = numeric_address(address.place, address.port);
  if (!found) return error_at(address, "not an address in numbers, and a pilot looks up no names");
  return Target{*found, Fd()};
}

}  // namespace

Result<Fd> start_connecting(const wire::Address& address) {
  const bool is_unix = address.kind == wire::Address::Kind::Unix;
  const auto target = is_unix ? unix_address(address) : tcp_address(address);
  if (!target) return target.error();
  Fd socket(::socket(target->bytes.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  if (!socket) return error_at(address, std::strerror(errno));
  if (!is_unix) {
    const int on = 1;
    ::setsockopt(socket.get(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    ::setsockopt(socket.get(), SOL_SOCKET, SO_KEEPALIVE, &on, sizeof on);
  }
  if (::connect(socket.get(), target->get(), target->length) != 0 && errno != EINPROGRESS) {
    return error_at(address, std::strerror(errno));
  }
  return socket;
}

int connection_error(int socket) {
  int error = 0;
  socklen_t length = sizeof error;
  if (::getsockopt(socket, SOL_SOCKET, SO_ERROR, &error, &length) != 0) return errno;
  return error;
}

}  // namespace hpcbatch::pilot

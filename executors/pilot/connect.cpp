#include "connect.hpp"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <cerrno>
#include <cstring>
#include <optional>
#include <string>

namespace hpcbatch::pilot {
namespace {

struct SocketAddress {
  sockaddr_storage bytes{};
  socklen_t length{};
  Fd folder;  // held open while a long path is reached through it
};

Error error_at(const wire::Address& address, const std::string& why) {
  return Error{Error::Kind::Transient, to_text(address) + ": " + why};
}

Result<SocketAddress> unix_address(const wire::Address& address) {
  SocketAddress result;
  std::string path = address.place;
  sockaddr_un plain{};
  plain.sun_family = AF_UNIX;
  if (path.size() >= sizeof plain.sun_path) {
    // The kernel takes 107 bytes; a descriptor of the directory makes any path short.
    const std::size_t slash = path.rfind('/');
    result.folder = Fd(::open(path.substr(0, slash).c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
    if (!result.folder) return error_at(address, std::strerror(errno));
    path = "/proc/self/fd/" + std::to_string(result.folder.get()) + path.substr(slash);
    if (path.size() >= sizeof plain.sun_path)
      return error_at(address, "the name of the socket is too long");
  }
  std::memcpy(plain.sun_path, path.c_str(), path.size() + 1);
  std::memcpy(&result.bytes, &plain, sizeof plain);
  result.length = sizeof plain;
  return result;
}

Result<SocketAddress> tcp_address(const wire::Address& address) {
  SocketAddress result;
  sockaddr_in v4{};
  v4.sin_family = AF_INET;
  v4.sin_port = htons(address.port);
  sockaddr_in6 v6{};
  v6.sin6_family = AF_INET6;
  v6.sin6_port = htons(address.port);
  if (::inet_pton(AF_INET, address.place.c_str(), &v4.sin_addr) == 1) {
    std::memcpy(&result.bytes, &v4, sizeof v4);
    result.length = sizeof v4;
  } else if (::inet_pton(AF_INET6, address.place.c_str(), &v6.sin6_addr) == 1) {
    std::memcpy(&result.bytes, &v6, sizeof v6);
    result.length = sizeof v6;
  } else {
    return error_at(address, "not an address in numbers, and a pilot looks up no names");
  }
  return result;
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
  if (::connect(socket.get(), reinterpret_cast<const sockaddr*>(&target->bytes), target->length) !=
          0 &&
      errno != EINPROGRESS) {
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

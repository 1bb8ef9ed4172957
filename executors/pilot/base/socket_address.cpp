#include "pilot/base/socket_address.hpp"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <cerrno>
#include <cstring>

namespace hpcbatch::pilot {

std::optional<SocketAddress> numeric_address(const std::string& address, std::uint16_t port) {
  SocketAddress result;
  sockaddr_in v4{};
  v4.sin_family = AF_INET;
  v4.sin_port = htons(port);
  sockaddr_in6 v6{};
  v6.sin6_family = AF_INET6;
  v6.sin6_port = htons(port);
  if (::inet_pton(AF_INET, address.c_str(), &v4.sin_addr) == 1) {
    std::memcpy(&result.bytes, &v4, sizeof v4);
    result.length = sizeof v4;
  } else if (::inet_pton(AF_INET6, address.c_str(), &v6.sin6_addr) == 1) {
    std::memcpy(&result.bytes, &v6, sizeof v6);
    result.length = sizeof v6;
  } else {
    return std::nullopt;
  }
  return result;
}

hpcbatch::Result<std::pair<Fd, std::uint16_t>> listen_on(const std::string& address,
                                                         std::uint16_t wanted) {
  constexpr int kWaiting = 128;
  for (const std::uint16_t port : {wanted, std::uint16_t{0}}) {
    const auto place = numeric_address(address, port);
    if (!place) return Error{Error::Kind::Rejected, "'" + address + "' is no address in numbers"};
    Fd socket(::socket(place->bytes.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
    if (!socket) break;
    const int on = 1;
    ::setsockopt(socket.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    if (place->bytes.ss_family == AF_INET6)
      ::setsockopt(socket.get(), IPPROTO_IPV6, IPV6_V6ONLY, &on, sizeof on);
    if (::bind(socket.get(), place->get(), place->length) == 0 &&
        ::listen(socket.get(), kWaiting) == 0) {
      sockaddr_storage bound{};
      socklen_t length = sizeof bound;
      ::getsockname(socket.get(), reinterpret_cast<sockaddr*>(&bound), &length);
      const std::uint16_t taken = place->bytes.ss_family == AF_INET
                                      ? reinterpret_cast<const sockaddr_in&>(bound).sin_port
                                      : reinterpret_cast<const sockaddr_in6&>(bound).sin6_port;
      return std::pair{std::move(socket), ntohs(taken)};
    }
    if (wanted == 0) break;
  }
  return Error{Error::Kind::Transient,
               "cannot listen for pilots on " + address + ": " + std::strerror(errno)};
}

}  // namespace hpcbatch::pilot

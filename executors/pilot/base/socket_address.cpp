#include "pilot/base/socket_address.hpp"

#include <arpa/inet.h>
#include <netinet/in.h>
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

}  // namespace hpcbatch::pilot

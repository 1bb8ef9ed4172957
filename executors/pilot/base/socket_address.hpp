// Addresses in numbers, as the system's calls take them.
#pragma once

#include <sys/socket.h>

#include <cstdint>
#include <optional>
#include <string>

namespace hpcbatch::pilot {

struct SocketAddress {
  sockaddr_storage bytes{};
  socklen_t length{};

  const sockaddr* get() const { return reinterpret_cast<const sockaddr*>(&bytes); }
};

/// No value: no IPv4 or IPv6 address in numbers.
std::optional<SocketAddress> numeric_address(const std::string& address, std::uint16_t port);

}  // namespace hpcbatch::pilot

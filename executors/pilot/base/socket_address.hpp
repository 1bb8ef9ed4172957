// Addresses in numbers, as the system's calls take them.
#pragma once

#include "posix/files.hpp"

#include "hpcbatch/result.hpp"

#include <sys/socket.h>

#include <cstdint>
#include <optional>
#include <string>
#include <utility>

namespace hpcbatch::pilot {

struct SocketAddress {
  sockaddr_storage bytes{};
  socklen_t length{};

  const sockaddr* get() const { return reinterpret_cast<const sockaddr*>(&bytes); }
};

/// No value: no IPv4 or IPv6 address in numbers.
std::optional<SocketAddress> numeric_address(const std::string& address, std::uint16_t port);

/// A socket that listens there, and its port: the wanted one, or another where that is taken or 0.
hpcbatch::Result<std::pair<Fd, std::uint16_t>> listen_on(const std::string& address,
                                                         std::uint16_t wanted);

}  // namespace hpcbatch::pilot

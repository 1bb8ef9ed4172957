#include "wire/node_addresses.hpp"

#include <arpa/inet.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <algorithm>
#include <array>
#include <cstdint>
#include <iterator>

namespace hpcbatch::wire {
namespace {

/// What container engines and hypervisors make for themselves: every node may have the same
/// addresses there, and reaches itself by them.
bool is_of_own_guests(const std::string& interface) {
  static constexpr std::array kNames{"docker", "br-",   "virbr", "veth", "cni",     "podman",
                                     "lxcbr",  "lxdbr", "vnet",  "cali", "flannel", "incusbr"};
  return std::any_of(kNames.begin(), kNames.end(),
                     [&](const char* name) { return interface.starts_with(name); });
}

bool is_private(const std::string& address) {
  in_addr v4{};
  if (::inet_pton(AF_INET, address.c_str(), &v4) == 1) {
    // RFC 1918, and RFC 6598 for those behind a provider's own translation.
    const std::uint32_t bits = ntohl(v4.s_addr);
    return (bits >> 24) == 10 || (bits >> 20) == 0xAC1 || (bits >> 16) == 0xC0A8 ||
           (bits >> 22) == 0x191;
  }
  // RFC 4193.
  return address.starts_with("fc") || address.starts_with("fd");
}

bool is_link_local(const std::string& address) {
  return address.starts_with("169.254.") || address.starts_with("fe80:");
}

}  // namespace

std::vector<NodeAddress> own_addresses() {
  std::vector<NodeAddress> found;
  ifaddrs* all = nullptr;
  if (::getifaddrs(&all) != 0) return found;
  for (const ifaddrs* one = all; one != nullptr; one = one->ifa_next) {
    if (one->ifa_addr == nullptr || (one->ifa_flags & IFF_UP) == 0) continue;
    std::array<char, INET6_ADDRSTRLEN> text{};
    const int family = one->ifa_addr->sa_family;
    const void* bytes = nullptr;
    if (family == AF_INET) bytes = &reinterpret_cast<const sockaddr_in*>(one->ifa_addr)->sin_addr;
    if (family == AF_INET6)
      bytes = &reinterpret_cast<const sockaddr_in6*>(one->ifa_addr)->sin6_addr;
    if (bytes != nullptr && ::inet_ntop(family, bytes, text.data(), text.size()) != nullptr)
      found.push_back({one->ifa_name, text.data()});
  }
  ::freeifaddrs(all);
  return found;
}

bool is_loopback(const std::string& address) {
  return address.starts_with("127.") || address == "::1" || address.starts_with("::ffff:127.");
}

std::vector<std::string> addresses_for_others(const std::vector<NodeAddress>& all) {
  std::vector<std::string> reachable;
  for (const NodeAddress& one : all) {
    if (!is_loopback(one.address) && !is_link_local(one.address) &&
        !is_of_own_guests(one.interface))
      reachable.push_back(one.address);
  }
  std::vector<std::string> inside;
  std::copy_if(reachable.begin(), reachable.end(), std::back_inserter(inside), is_private);
  return inside.empty() ? reachable : inside;
}

}  // namespace hpcbatch::wire

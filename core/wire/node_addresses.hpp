// By which addresses others reach this machine.
#pragma once

#include <string>
#include <vector>

namespace hpcbatch::wire {

struct NodeAddress {
  std::string interface;
  std::string address;  ///< numeric
};

/// Of the interfaces that are up.
std::vector<NodeAddress> own_addresses();

/// Those that other nodes may reach: the private ones where there are any, else all but loopback,
/// link-local ones and those of bridges to a node's own guests.  Pure.
std::vector<std::string> addresses_for_others(const std::vector<NodeAddress>& all);

/// Of no other machine, whatever it is called there.
bool is_loopback(const std::string& address);

}  // namespace hpcbatch::wire

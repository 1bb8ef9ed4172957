// Peers at a listener that have not proved yet that they are pilots: how many there may be, and who
// goes for one more.
#pragma once

#include <chrono>
#include <cstddef>
#include <optional>
#include <string>
#include <vector>

namespace hpcbatch {

struct UnprovenPeer {
  std::string address;        ///< empty on a socket of this machine
  bool names_a_pilot{false};  ///< it has said hello as a pilot that is known
  std::chrono::steady_clock::time_point since;
};

struct PlaceForPeer {
  bool has_room{true};                ///< for the newcomer, once `goes` is gone
  std::optional<std::size_t> goes{};  ///< of those that are there
};

/// A pilot says hello at once, so silent ones go first, and the oldest of the address that has most
/// of them; then, of those that have said hello, one that has taken longer than any way is long.
PlaceForPeer place_for(const std::vector<UnprovenPeer>& unproven_peers, const std::string& address,
                       std::chrono::steady_clock::time_point now);

}  // namespace hpcbatch

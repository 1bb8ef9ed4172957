#include "links/unproven_peers.hpp"

#include <map>
#include <string_view>
#include <tuple>

namespace hpcbatch {
namespace {

using namespace std::chrono_literals;

constexpr std::size_t kMost = 64;
constexpr std::size_t kMostSilentOfAnAddress = 16;
// A proof takes one way there and back behind the hello.
constexpr auto kLongestProof = 1s;

}  // namespace

PlaceForPeer place_for(const std::vector<UnprovenPeer>& unproven_peers, const std::string& address,
                       std::chrono::steady_clock::time_point now) {
  std::map<std::string_view, std::size_t> silent, all;
  for (const UnprovenPeer& one : unproven_peers) {
    ++all[one.address];
    if (!one.names_a_pilot) ++silent[one.address];
  }
  const auto oldest = [&](const auto& may_go, const auto& weight) {
    std::optional<std::size_t> found;
    const auto rank = [&](const UnprovenPeer& one) {
      return std::tuple(weight(one), now - one.since);
    };
    for (std::size_t i = 0; i < unproven_peers.size(); ++i) {
      if (!may_go(unproven_peers[i])) continue;
      if (!found || rank(unproven_peers[i]) > rank(unproven_peers[*found])) found = i;
    }
    return found;
  };
  if (!address.empty() && silent[address] >= kMostSilentOfAnAddress) {
    return {true, oldest(
                      [&](const UnprovenPeer& one) {
                        return !one.names_a_pilot && one.address == address;
                      },
                      [](const UnprovenPeer&) { return 0; })};
  }
  if (unproven_peers.size() < kMost) return {};
  auto goes = oldest([](const UnprovenPeer& one) { return !one.names_a_pilot; },
                     [&](const UnprovenPeer& one) { return silent[one.address]; });
  if (!goes) {
    goes = oldest([&](const UnprovenPeer& one) { return now - one.since > kLongestProof; },
                  [&](const UnprovenPeer& one) { return all[one.address]; });
  }
  return {goes.has_value(), goes};
}

}  // namespace hpcbatch

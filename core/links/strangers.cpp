#include "links/strangers.hpp"

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

StrangerPlace place_for(const std::vector<Stranger>& strangers, const std::string& address,
                        std::chrono::steady_clock::time_point now) {
  std::map<std::string_view, std::size_t> silent, all;
  for (const Stranger& one : strangers) {
    ++all[one.address];
    if (!one.names_a_pilot) ++silent[one.address];
  }
  const auto oldest = [&](const auto& may_go, const auto& weight) {
    std::optional<std::size_t> found;
    const auto rank = [&](const Stranger& one) { return std::tuple(weight(one), now - one.since); };
    for (std::size_t i = 0; i < strangers.size(); ++i) {
      if (!may_go(strangers[i])) continue;
      if (!found || rank(strangers[i]) > rank(strangers[*found])) found = i;
    }
    return found;
  };
  if (!address.empty() && silent[address] >= kMostSilentOfAnAddress) {
    return {
        true,
        oldest([&](const Stranger& one) { return !one.names_a_pilot && one.address == address; },
               [](const Stranger&) { return 0; })};
  }
  if (strangers.size() < kMost) return {};
  auto goes = oldest([](const Stranger& one) { return !one.names_a_pilot; },
                     [&](const Stranger& one) { return silent[one.address]; });
  if (!goes) {
    goes = oldest([&](const Stranger& one) { return now - one.since > kLongestProof; },
                  [&](const Stranger& one) { return all[one.address]; });
  }
  return {goes.has_value(), goes};
}

}  // namespace hpcbatch

// Who goes for one more at a door that pilots come to.
#include "links/link_server.hpp"

#include <gtest/gtest.h>

namespace hpcbatch {
namespace {

using namespace std::chrono_literals;

const std::chrono::steady_clock::time_point kNow{1h};

/// The last is the oldest.
std::vector<UnprovenPeer> peers(std::size_t count, const std::string& address, bool names_a_pilot) {
  std::vector<UnprovenPeer> all;
  for (std::size_t i = 0; i < count; ++i) all.push_back({address, names_a_pilot, kNow - i * 10ms});
  return all;
}

std::vector<UnprovenPeer> together(std::vector<UnprovenPeer> some,
                                   const std::vector<UnprovenPeer>& others) {
  some.insert(some.end(), others.begin(), others.end());
  return some;
}

TEST(Strangers, SixtyFourHaveRoom) {
  const auto place = place_for(peers(63, "", false), "", kNow);
  EXPECT_TRUE(place.has_room);
  EXPECT_FALSE(place.goes);
}

TEST(Strangers, TheOldestSilentOneGoesForOneMore) {
  const auto place = place_for(peers(64, "", false), "", kNow);
  EXPECT_TRUE(place.has_room);
  EXPECT_EQ(place.goes, 63U);
}

TEST(Strangers, WhoHasSaidHelloStaysHoweverOld) {
  auto all = together(peers(63, "10.0.0.1", true), peers(1, "10.0.0.2", false));
  EXPECT_EQ(place_for(all, "10.0.0.3", kNow).goes, 63U);
}

TEST(Strangers, TheAddressThatHasMostSilentOnesGivesOne) {
  auto all = together(peers(2, "10.0.0.1", false), peers(15, "10.0.0.2", false));
  all[0].since = kNow - 4s;
  all = together(all, peers(47, "10.0.0.3", true));
  EXPECT_EQ(place_for(all, "10.0.0.4", kNow).goes, 16U) << "the oldest of the fifteen";
}

TEST(Strangers, AnAddressHasSixteenSilentOnesWhereThereIsRoomForMore) {
  const auto all = together(peers(5, "10.0.0.1", false), peers(16, "10.0.0.2", false));
  EXPECT_EQ(place_for(all, "10.0.0.2", kNow).goes, 20U);
  EXPECT_FALSE(place_for(all, "10.0.0.1", kNow).goes);
  EXPECT_FALSE(place_for(peers(30, "10.0.0.2", true), "10.0.0.2", kNow).goes)
      << "the pilots of a cluster behind one address all come back at once";
  EXPECT_FALSE(place_for(peers(30, "", false), "", kNow).goes) << "on this machine there is one";
}

TEST(Strangers, WhereAllHaveSaidHelloOnlyOneThatTakesTooLongGoes) {
  auto all = peers(64, "10.0.0.1", true);
  EXPECT_FALSE(place_for(all, "10.0.0.2", kNow).has_room);
  all[7].since = kNow - 2s;
  EXPECT_EQ(place_for(all, "10.0.0.2", kNow).goes, 7U);
}

}  // namespace
}  // namespace hpcbatch

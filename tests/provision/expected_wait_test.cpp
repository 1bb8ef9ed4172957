// What waits of the past say of the next one, and which of several starts first.
#include "provision/plan.hpp"

#include <gtest/gtest.h>

namespace hpcbatch::provision {
namespace {

using namespace std::chrono_literals;
using Places = std::vector<std::size_t>;

const Time kNow{};

TEST(ExpectedWait, NothingIsKnownAtFirst) {
  EXPECT_FALSE(expected_wait({}, {}, kNow));
}

TEST(ExpectedWait, TheLatestCountMost) {
  KnownWaits known;
  learn_wait(known, 10min, kNow);
  EXPECT_EQ(expected_wait(known, {}, kNow), Duration{10min});
  learn_wait(known, 20min, kNow);
  EXPECT_EQ(expected_wait(known, {}, kNow), Duration{15min});
  for (int i = 0; i < 20; ++i) learn_wait(known, 1h, kNow);
  EXPECT_GT(*expected_wait(known, {}, kNow), 59min);
  learn_wait(known, 0s, kNow);
  EXPECT_LT(*expected_wait(known, {}, kNow), 41min);
  EXPECT_GT(*expected_wait(known, {}, kNow), 39min) << "but not alone";
}

TEST(ExpectedWait, OneThatWaitsStillSaysAtLeastThat) {
  EXPECT_EQ(expected_wait({}, 10min, kNow), Duration{10min});
  KnownWaits known;
  learn_wait(known, 1min, kNow);
  EXPECT_EQ(expected_wait(known, 10min, kNow), Duration{10min});
  EXPECT_EQ(expected_wait(known, 20s, kNow), Duration{1min});
}

TEST(ExpectedWait, ADayLaterItIsTriedAgain) {
  KnownWaits known;
  learn_wait(known, 5h, kNow);
  EXPECT_EQ(expected_wait(known, {}, kNow + 23h), Duration{5h});
  EXPECT_FALSE(expected_wait(known, {}, kNow + 25h));
  learn_wait(known, 1min, kNow + 25h);
  EXPECT_EQ(expected_wait(known, {}, kNow + 25h), Duration{1min}) << "the old one counts no more";
}

TEST(ExpectedWait, AClockThatWasSetBackIsNoNegativeWait) {
  KnownWaits known;
  learn_wait(known, Duration{-1h}, kNow);
  EXPECT_EQ(expected_wait(known, {}, kNow), Duration{});
}

TEST(StartPlaces, TheShortestWaitGoesFirst) {
  EXPECT_EQ(start_places({}), Places{});
  EXPECT_EQ(start_places({1h, 1min, 20min}), (Places{2, 0, 1}));
}

TEST(StartPlaces, SmallDifferencesMoveNobody) {
  EXPECT_EQ(start_places({30s, 0s, 10s}), (Places{0, 0, 0}));
  EXPECT_EQ(start_places({31s, 0s}), (Places{1, 0}));
  EXPECT_EQ(start_places({60min, 50min}), (Places{0, 0})) << "a quarter more is no more";
  EXPECT_EQ(start_places({60min, 40min}), (Places{1, 0}));
}

TEST(StartPlaces, AChainOfSmallDifferencesIsALargeOne) {
  EXPECT_EQ(start_places({50s, 25s, 0s}), (Places{1, 0, 0}));
}

}  // namespace
}  // namespace hpcbatch::provision

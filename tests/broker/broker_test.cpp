#include "broker/broker.hpp"

#include <gtest/gtest.h>

namespace hpcbatch::broker {
namespace {

using std::chrono::seconds;

const std::string kFast = "gpus/v100", kSlow = "gpus/k80";

Waiting waiting(std::uint32_t id, std::string kind, double tasks) {
  return {.id = id, .kind = std::move(kind), .tasks = tasks, .ways = {{kFast, 1}, {kSlow, 1}}};
}

void know(Broker& broker, const std::string& kind, int on_fast, int on_slow) {
  for (int run = 0; run < 3; ++run) {
    broker.speeds().learn(kind, kFast, seconds{on_fast});
    broker.speeds().learn(kind, kSlow, seconds{on_slow});
  }
}

TEST(Broker, PutsFirstWhatGainsMost) {
  Broker broker;
  know(broker, "even", 10, 10);
  know(broker, "steep", 10, 100);
  broker.weigh({{kFast, 1}, {kSlow, 1}}, {waiting(1, "even", 100), waiting(2, "steep", 100)}, {});
  EXPECT_LT(broker.place(2, kFast).rank, broker.place(1, kFast).rank);
  EXPECT_LT(broker.place(1, kSlow).rank, broker.place(2, kSlow).rank);
}

TEST(Broker, TriesEachDeviceThreeTimesAndNoMore) {
  Broker broker;
  know(broker, "steep", 10, 100);
  broker.weigh({{kFast, 1}, {kSlow, 1}}, {waiting(1, "new", 100), waiting(2, "steep", 100)},
               {{{"new", kSlow}, 1}});
  EXPECT_EQ(broker.place(1, kSlow).rank, 0);
  broker.taken(1, kSlow);
  broker.taken(1, kSlow);
  EXPECT_NE(broker.place(1, kSlow).rank, 0);
  EXPECT_EQ(broker.place(1, kFast).rank, 0);
}

TEST(Broker, TriesNothingWithFewTasks) {
  Broker broker;
  broker.weigh({{kFast, 1}, {kSlow, 1}}, {waiting(1, "new", 5)}, {});
  EXPECT_NE(broker.place(1, kSlow).rank, 0);
}

TEST(Broker, ATrialIsOwedStillWhenOthersOfItsKindRanFirst) {
  Broker broker;
  know(broker, "steep", 10, 30);
  // Two of 24 have run, one runs, all on the fast one, before the slow one was free at all.
  for (int run = 0; run < 2; ++run) broker.speeds().learn("even", kFast, seconds{10});
  broker.weigh({{kFast, 1}, {kSlow, 2}}, {waiting(1, "steep", 21), waiting(2, "even", 21)},
               {{{"even", kFast}, 1}});
  EXPECT_EQ(broker.place(2, kSlow).rank, 0);
}

TEST(Broker, OfAFewTasksOneIsTried) {
  Broker broker;
  know(broker, "steep", 10, 30);
  broker.weigh({{kFast, 1}, {kSlow, 1}}, {waiting(1, "new", 8), waiting(2, "steep", 8)}, {});
  EXPECT_EQ(broker.place(1, kSlow).rank, 0);
  broker.taken(1, kSlow);
  EXPECT_NE(broker.place(1, kSlow).rank, 0);
}

TEST(Broker, AThirdIsTriedWhereTwoDisagree) {
  for (const int second : {11, 60}) {
    Broker broker;
    know(broker, "steep", 10, 30);
    broker.speeds().learn("new", kSlow, seconds{10});
    broker.speeds().learn("new", kSlow, seconds{second});
    broker.weigh({{kFast, 1}, {kSlow, 1}}, {waiting(1, "new", 100), waiting(2, "steep", 100)}, {});
    EXPECT_EQ(broker.place(1, kSlow).rank == 0, second == 60) << second;
  }
}

TEST(Broker, NothingIsTriedWithTheLastOnes) {
  Broker broker;
  know(broker, "steep", 10, 30);
  for (int run = 0; run < 100; ++run) broker.speeds().learn("even", kFast, seconds{10});
  broker.weigh({{kFast, 1}, {kSlow, 1}}, {waiting(1, "even", 3), waiting(2, "steep", 8)}, {});
  EXPECT_NE(broker.place(1, kSlow).rank, 0);
}

TEST(Broker, OfWhatNobodyKnowsItsUsersOrderCounts) {
  Broker broker;
  Waiting one = waiting(1, "new", 4);
  // A whole machine of one, a quarter of the other.
  one.ways = {{kFast, 8, 0}, {kSlow, 1, 1}};
  broker.weigh({{kFast, 8}, {kSlow, 4}}, {one}, {});
  EXPECT_LT(broker.place(1, kFast).rank, broker.place(1, kSlow).rank);
  std::swap(one.ways[0].order, one.ways[1].order);
  broker.weigh({{kFast, 8}, {kSlow, 4}}, {one}, {});
  EXPECT_LT(broker.place(1, kSlow).rank, broker.place(1, kFast).rank);
  know(broker, "new", 1, 100);
  one.ways = {{kFast, 1, 1}, {kSlow, 1, 0}};
  broker.weigh({{kFast, 8}, {kSlow, 8}}, {one}, {});
  EXPECT_LT(broker.place(1, kFast).rank, broker.place(1, kSlow).rank) << "what is measured counts";
}

TEST(Broker, OneSlowRunByChanceKeepsNothingOffADevice) {
  for (int slow = 0; slow < 3; ++slow) {
    Broker broker;
    know(broker, "steep", 10, 30);
    for (int run = 0; run < 3; ++run) {
      broker.speeds().learn("even", kFast, seconds{10});
      broker.speeds().learn("even", kSlow, seconds{run == slow ? 600 : 10});
    }
    broker.weigh({{kFast, 1}, {kSlow, 2}}, {waiting(1, "steep", 24), waiting(2, "even", 24)}, {});
    EXPECT_LT(broker.place(1, kFast).rank, broker.place(2, kFast).rank) << slow;
    EXPECT_LT(broker.place(2, kSlow).rank, broker.place(1, kSlow).rank) << slow;
  }
}

TEST(Broker, LeavesTheLastOneToTheFastDevice) {
  Broker broker;
  know(broker, "steep", 10, 100);
  broker.weigh({{kFast, 1, 5}, {kSlow, 1}}, {waiting(1, "steep", 1)}, {});
  EXPECT_TRUE(broker.place(1, kSlow).is_left);
  EXPECT_FALSE(broker.place(1, kFast).is_left);
  // Until it is busy for longer than the slow one takes.
  broker.weigh({{kFast, 1, 200}, {kSlow, 1}}, {waiting(1, "steep", 1)}, {});
  EXPECT_FALSE(broker.place(1, kSlow).is_left);
}

TEST(Broker, WhatIsTheOnlyDeviceIsNeverLeft) {
  Broker broker;
  know(broker, "steep", 10, 100);
  broker.weigh({{kSlow, 1}}, {waiting(1, "steep", 1)}, {});
  EXPECT_FALSE(broker.place(1, kSlow).is_left);
  EXPECT_EQ(broker.place(1, kSlow).rank, 1);
  EXPECT_EQ(broker.place(9, kSlow).rank, 1);
}

}  // namespace
}  // namespace hpcbatch::broker

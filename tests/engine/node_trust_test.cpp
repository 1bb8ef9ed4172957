// Which nodes are to blame, by ends alone: what is chance, what is the task's own, what is the
// node's.
#include "engine/trust/node_trust.hpp"

#include <gtest/gtest.h>

#include <random>

namespace hpcbatch {
namespace {

using namespace std::chrono_literals;

class NodeTrustTest : public ::testing::Test {
 protected:
  static NodeName node(int number) { return {"here", "n" + std::to_string(number)}; }
  bool fails(int at, TaskKind kind = 1, bool never_ran = false) {
    return trust_.failed(node(at), kind,
                         {.quick = true,
                          .never_ran = never_ran,
                          .why = "exit 1",
                          .can_go_elsewhere = [this] { return others_; }},
                         now_);
  }
  void well(int at, TaskKind kind = 1) { trust_.well(node(at), kind, now_); }

  Time now_{from_microseconds(1'700'000'000'000'000)};
  bool others_{true};
  NodeTrust trust_;
};

TEST_F(NodeTrustTest, ANodeThatFailsWhatOthersDoWellIsBad) {
  EXPECT_FALSE(fails(1));
  for (int i = 0; i < 20; ++i) well(2);
  EXPECT_FALSE(fails(1)) << "two may be chance";
  EXPECT_TRUE(fails(1));
  EXPECT_TRUE(trust_.is_doubted(node(1)));
  EXPECT_GT(trust_.next_try(node(1)), now_);
  trust_.well_elsewhere(node(1), 1, now_);
  EXPECT_FALSE(trust_.is_bad(node(1))) << "one proof is none";
  trust_.well_elsewhere(node(1), 1, now_);
  for (int i = 0; i < 80; ++i) well(2);
  EXPECT_TRUE(trust_.is_bad(node(1)));
  EXPECT_FALSE(trust_.is_braked(node(2)));
  EXPECT_NE(trust_.why(node(1)).find("exit 1"), std::string::npos);
  now_ += 29min;
  trust_.on_time(now_);
  EXPECT_TRUE(trust_.is_bad(node(1)));
  now_ += 2min;
  trust_.on_time(now_);
  EXPECT_FALSE(trust_.any());
}

TEST_F(NodeTrustTest, WhatFailsEverywhereIsNobodysNode) {
  int doubts = 0;
  for (int round = 0; round < 200; ++round) {
    for (int at = 1; at <= 4; ++at) doubts += fails(at) ? 1 : 0;
  }
  EXPECT_LE(doubts, 2);
  EXPECT_FALSE(trust_.any());
}

TEST_F(NodeTrustTest, ACommandThatNoNodeHasIsTriedAtOneMore) {
  EXPECT_TRUE(fails(1, 1, true));
  EXPECT_FALSE(fails(2, 1, true));
  EXPECT_FALSE(trust_.any()) << "it is missing there too";
  EXPECT_FALSE(fails(1, 1, true));
}

TEST_F(NodeTrustTest, ABlockOfFailingTasksAtOneNodeIsAcquittedByTheNext) {
  EXPECT_FALSE(fails(2));
  for (int i = 0; i < 100; ++i) well(1 + i % 2);
  int doubts = 0;
  for (int i = 0; i < 6; ++i) doubts += fails(1) ? 1 : 0;
  EXPECT_GT(doubts, 0);
  // Those that were tried elsewhere fail there as well.
  for (int i = 0; i < 2; ++i) {
    EXPECT_TRUE(trust_.is_doubted(node(1)));
    trust_.failed_elsewhere(node(1), 1);
    fails(2);
  }
  EXPECT_FALSE(trust_.any());
}

TEST_F(NodeTrustTest, WhatOftenFailsAnywhereMakesNoNodeBad) {
  std::mt19937 random(7);
  int doubts = 0;
  for (int i = 0; i < 20'000; ++i) {
    const int at = 1 + i % 4;
    if (random() % 2 == 0) {
      well(at);
      continue;
    }
    if (!fails(at)) continue;
    ++doubts;
    // Elsewhere it is as random.
    if (random() % 2 == 0) trust_.well_elsewhere(node(at), 1, now_);
    for (int other = 1; other <= 4; ++other) ASSERT_FALSE(trust_.is_bad(node(other))) << i;
  }
  EXPECT_LT(doubts, 2'000);
}

TEST_F(NodeTrustTest, WithoutAnotherNodeNothingIsInDoubt) {
  others_ = false;
  for (int i = 0; i < 100; ++i) EXPECT_FALSE(fails(1, 1, i % 2 == 0));
  EXPECT_FALSE(trust_.any());
}

TEST_F(NodeTrustTest, ADoubtThatNothingComesOfIsGivenUp) {
  for (int i = 0; i < 6; ++i) fails(1);
  EXPECT_TRUE(trust_.is_doubted(node(1)));
  now_ += 121s;
  trust_.on_time(now_);
  EXPECT_FALSE(trust_.any());
  EXPECT_FALSE(fails(1)) << "it was waited for long enough";
  well(2);
  for (int i = 0; i < 6; ++i) well(2);
  EXPECT_TRUE(fails(1)) << "now it is known to do well elsewhere";
}

TEST_F(NodeTrustTest, ABadNodeThatDoesWellIsGoodAgain) {
  for (int i = 0; i < 8; ++i) fails(1);
  for (int i = 0; i < 20; ++i) well(2);
  trust_.well_elsewhere(node(1), 1, now_);
  trust_.well_elsewhere(node(1), 1, now_);
  ASSERT_TRUE(trust_.is_bad(node(1)));
  for (int i = 0; i < 3; ++i) well(1);
  EXPECT_FALSE(trust_.any());
}

TEST_F(NodeTrustTest, KindsAreJudgedApart) {
  EXPECT_FALSE(fails(1, 1));
  for (int i = 0; i < 20; ++i) well(2, 1);
  for (TaskKind kind = 2; kind < 2000; ++kind) EXPECT_FALSE(fails(1, kind));
  EXPECT_FALSE(trust_.any());
}

}  // namespace
}  // namespace hpcbatch

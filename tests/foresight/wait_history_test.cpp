#include "foresight/wait_history.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <random>

namespace hpcbatch::foresight {
namespace {

TEST(WaitHistoryTest, OfFewNothingIsSaid) {
  WaitHistory history;
  for (int i = 0; i < 9; ++i) history.add(100);
  EXPECT_EQ(history.bound(), std::nullopt);
  history.add(100);
  const auto bound = history.bound();
  ASSERT_TRUE(bound);
  EXPECT_EQ(bound->half, 100);
  EXPECT_EQ(bound->most, 100);
  EXPECT_EQ(bound->from, 10U);
}

TEST(WaitHistoryTest, OrderStatistics) {
  WaitHistory history;
  for (const Seconds wait : {1, 9, 2, 8, 3, 7, 4, 6, 5}) history.add(wait * 100);
  history.add(1000);
  EXPECT_EQ(history.bound()->half, 600);   // the sixth of ten
  EXPECT_EQ(history.bound()->most, 1000);  // the tenth of ten
}

TEST(WaitHistoryTest, TheBoundHoldsWhateverTheDistribution) {
  std::mt19937 random(2);
  std::lognormal_distribution<double> waits(7, 2);
  WaitHistory history;
  for (int i = 0; i < 4000; ++i) history.add(static_cast<Seconds>(waits(random)));
  EXPECT_NEAR(history.score().by_most, 0.9, 0.03);
  EXPECT_NEAR(history.score().by_half, 0.5, 0.04);
  EXPECT_TRUE(history.is_trusted());
}

TEST(WaitHistoryTest, AChangeIsNoticedSoon) {
  WaitHistory history;
  for (int i = 0; i < 200; ++i) history.add(100 + i % 7);
  for (int i = 0; i < 3; ++i) history.add(50'000 + i);
  // Ten are left, three of them new: the bound is already theirs.
  EXPECT_EQ(history.bound()->from, 10U);
  EXPECT_GT(history.bound()->most, 40'000);
  for (int i = 0; i < 12; ++i) history.add(50'000 + i);
  EXPECT_GT(history.bound()->half, 40'000);
  for (int i = 0; i < 20; ++i) history.add(5);
  EXPECT_LT(history.bound()->half, 100);
}

TEST(WaitHistoryTest, WhoHasWaitedWaitsLonger) {
  WaitHistory history;
  for (Seconds i = 1; i <= 40; ++i) history.add(i * 17 % 41 * 100);
  EXPECT_GT(history.bound(2000)->half, 2000);
  EXPECT_EQ(history.bound(2000)->from, 20U);
  EXPECT_EQ(history.bound(3500), std::nullopt);  // too few have waited so long
}

TEST(WaitHistoryTest, WhatDoesNotHoldIsNotTold) {
  WaitHistory history;
  // Each longer than all before: no bound from the past holds.
  Seconds wait = 10;
  for (int i = 0; i < 60; ++i) history.add(wait += wait / 5 + 1);
  EXPECT_FALSE(history.is_trusted());
  EXPECT_EQ(history.bound(), std::nullopt);
}

TEST(WaitHistoryTest, TheScore) {
  WaitHistory history;
  for (int i = 0; i < 10; ++i) history.add(999);
  history.add(999);
  EXPECT_EQ(history.score().count, 1U);
  EXPECT_EQ(history.score().mean_square, 0);
  history.add(9999);  // ten times as long
  EXPECT_NEAR(history.score().mean_square, 0.5, 1e-9);
  EXPECT_EQ(history.score().within_2, 0.5);
  EXPECT_EQ(history.score().within_3, 0.5);
  EXPECT_EQ(history.score().by_most, 0.5);
}

}  // namespace
}  // namespace hpcbatch::foresight

#include "broker/speed_table.hpp"

#include <gtest/gtest.h>

#include <string>

namespace hpcbatch::broker {
namespace {

using std::chrono::seconds;

TEST(SpeedTable, KnowsWhatRan) {
  SpeedTable table;
  for (int run = 0; run < 5; ++run) table.learn("train", "gpus/a100", seconds{10});
  EXPECT_NEAR(*table.seconds("train", "gpus/a100"), 10, 1e-9);
  EXPECT_EQ(table.find("train", "gpus/a100")->count, 5);
  EXPECT_FALSE(table.seconds("other", "gpus/a100"));
}

TEST(SpeedTable, HopesForLessWhereItKnowsLittle) {
  SpeedTable table;
  for (const int run : {10, 10, 100}) table.learn("train", "gpus/a100", seconds{run});
  EXPECT_LT(*table.hoped_seconds("train", "gpus/a100"), *table.seconds("train", "gpus/a100") / 1.5);
  for (int run = 0; run < 200; ++run) table.learn("train", "gpus/a100", seconds{10});
  EXPECT_NEAR(*table.hoped_seconds("train", "gpus/a100"), 10, 0.2);
  EXPECT_FALSE(table.hoped_seconds("other", "gpus/a100"));
  EXPECT_NEAR(*table.hoped_seconds("train", "gpus/v100"), *table.seconds("train", "gpus/v100"), 0);
}

TEST(SpeedTable, FillsInByTheMedianRatioOfOtherKinds) {
  SpeedTable table;
  const int slower[] = {2, 4, 30};
  for (int kind = 0; kind < 3; ++kind) {
    table.learn(std::to_string(kind), "gpus/v100", seconds{10});
    table.learn(std::to_string(kind), "gpus/k80", seconds{10 * slower[kind]});
  }
  table.learn("new", "gpus/v100", seconds{100});
  EXPECT_NEAR(*table.seconds("new", "gpus/k80"), 400, 1e-6);
}

TEST(SpeedTable, WithoutAnyThatRanOnBothOneIsAsFastAsTheOther) {
  SpeedTable table;
  table.learn("new", "gpus/v100", seconds{100});
  EXPECT_NEAR(*table.seconds("new", "gpus/k80"), 100, 1e-6);
}

TEST(SpeedTable, WhatRanLatestCountsMost) {
  Runs runs;
  for (int run = 0; run < 100; ++run) learn(runs, seconds{1});
  for (int run = 0; run < 200; ++run) learn(runs, seconds{100});
  EXPECT_GT(runs.mean, 4.5);  // the logarithm of 90
}

TEST(SpeedTable, PutsTogetherWhatWasKeptApart) {
  Runs all, early, late;
  for (int run = 1; run <= 6; ++run) {
    learn(all, seconds{run});
    learn(run <= 3 ? early : late, seconds{run});
  }
  const Runs both = put_together(early, late);
  EXPECT_NEAR(both.mean, all.mean, 1e-9);
  EXPECT_NEAR(both.variance, all.variance, 1e-9);
  EXPECT_EQ(both.count, 6);
  EXPECT_EQ(put_together({}, late), late);
}

TEST(SpeedTable, KeepsNoMoreKindsThanItMay) {
  SpeedTable table;
  for (std::size_t kind = 0; kind < SpeedTable::kMostKinds + 10; ++kind)
    table.learn(std::to_string(kind), "gpus/a100", seconds{1});
  EXPECT_EQ(table.kinds().size(), SpeedTable::kMostKinds);
}

}  // namespace
}  // namespace hpcbatch::broker

// Spreads of many values in little room.
#include "records/sketch.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>
#include <vector>

namespace hpcbatch::records {
namespace {

TEST(Sketch, QuantilesAreOffByATwentiethAtMost) {
  std::mt19937 random(7);
  std::lognormal_distribution<double> times(3, 2);
  std::vector<double> all;
  Sketch sketch;
  for (int i = 0; i < 20'000; ++i) {
    all.push_back(times(random));
    sketch.add(all.back());
  }
  std::sort(all.begin(), all.end());
  for (const double share : {0.01, 0.1, 0.5, 0.9, 0.95, 0.99, 1.0}) {
    const double real = all.at(static_cast<std::size_t>(std::ceil(share * 20'000)) - 1);
    EXPECT_NEAR(sketch.quantile(share) / real, 1, 0.05) << share;
  }
}

TEST(Sketch, TwoAreAddedUpExactly) {
  Sketch one, other, both;
  for (int i = 1; i <= 1000; ++i) {
    (i % 3 == 0 ? one : other).add(i * 0.25);
    both.add(i * 0.25);
  }
  one.add(other);
  EXPECT_EQ(one.count(), both.count());
  for (const double share : {0.0, 0.2, 0.5, 0.8, 1.0})
    EXPECT_EQ(one.quantile(share), both.quantile(share));
}

TEST(Sketch, WhatIsOldCountsLess) {
  Sketch sketch;
  for (int i = 0; i < 90; ++i) sketch.add(100);
  sketch.scale(1.0 / 9);
  for (int i = 0; i < 30; ++i) sketch.add(1);
  EXPECT_NEAR(sketch.count(), 40, 1e-3);
  EXPECT_NEAR(sketch.quantile(0.7), 1, 0.05);
  EXPECT_NEAR(sketch.quantile(0.8), 100, 5);
}

TEST(Sketch, OddValuesDoNoHarm) {
  Sketch sketch;
  EXPECT_EQ(sketch.quantile(0.5), 0);
  sketch.add(std::numeric_limits<double>::quiet_NaN());
  EXPECT_EQ(sketch.count(), 0);
  for (const double odd : {-1.0, 0.0, 1e-300, 1e300, std::numeric_limits<double>::infinity()})
    sketch.add(odd);
  EXPECT_EQ(sketch.count(), 5);
  EXPECT_EQ(sketch.quantile(0.3), 0);
  EXPECT_LE(sketch.counts().size(), 512U);
  EXPECT_GT(sketch.quantile(1), 1e30);
}

TEST(Sketch, IsTheSameAfterItWasKept) {
  Sketch sketch;
  for (int i = 0; i < 100; ++i) sketch.add(i);
  const Sketch kept = Sketch::of(sketch.zeros(), sketch.lowest(), sketch.counts());
  EXPECT_EQ(kept.count(), 100);
  EXPECT_EQ(kept.quantile(0.9), sketch.quantile(0.9));
}

}  // namespace
}  // namespace hpcbatch::records

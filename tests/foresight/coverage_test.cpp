#include "foresight/wait_history.hpp"

#include <gtest/gtest.h>

namespace hpcbatch::foresight {
namespace {

TEST(CoverageTest, OneMissIsNoProof) {
  Coverage coverage(0.9);
  EXPECT_TRUE(coverage.is_right());
  coverage.add(false);
  EXPECT_TRUE(coverage.is_right());
}

TEST(CoverageTest, ThreeMissesAtOnceAre) {
  Coverage coverage(0.9);
  for (int i = 0; i < 3; ++i) coverage.add(false);
  EXPECT_FALSE(coverage.is_right());
}

TEST(CoverageTest, WhatWasLongAgoIsForgotten) {
  Coverage coverage(0.9, 20);
  for (int i = 0; i < 10; ++i) coverage.add(false);
  EXPECT_FALSE(coverage.is_right());
  for (int i = 0; i < 20; ++i) coverage.add(true);
  EXPECT_TRUE(coverage.is_right());
  EXPECT_EQ(coverage.value(), 1.0);
}

TEST(CoverageTest, TheBinomialDistribution) {
  EXPECT_NEAR(binomial_at_most(0, 3, 0.9), 0.001, 1e-12);
  EXPECT_NEAR(binomial_at_most(1, 2, 0.5), 0.75, 1e-12);
  EXPECT_EQ(binomial_at_most(2, 2, 0.9), 1.0);
}

}  // namespace
}  // namespace hpcbatch::foresight

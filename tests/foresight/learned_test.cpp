// What is learned of waits: how far off it was, and when a model is good enough.
#include "foresight/learned/wait_model.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <random>

namespace hpcbatch::foresight {
namespace {

using testing::HasSubstr;

TEST(QuantileOfCensored, IsThePlainOneWhereAllIsKnown) {
  std::vector<Censored> values;
  for (int at = 100; at > 0; --at) values.push_back({static_cast<double>(at), false});
  EXPECT_EQ(quantile_of_censored(values, 0.9), 90);
  EXPECT_EQ(quantile_of_censored(values, 0.5), 50);
  EXPECT_EQ(quantile_of_censored(values, 1), 100);
  EXPECT_EQ(quantile_of_censored({}, 0.5), std::nullopt);
}

TEST(QuantileOfCensored, WhatIsMoreThanItsValueCountsAbove) {
  std::mt19937 random(1);
  std::exponential_distribution<double> waits(1.0), patience(0.5);
  std::vector<Censored> values;
  for (int at = 0; at < 20'000; ++at) {
    const double wait = waits(random), seen = patience(random);
    values.push_back({std::min(wait, seen), seen < wait});
  }
  EXPECT_NEAR(*quantile_of_censored(values, 0.9), std::log(10.0), 0.08);
}

TEST(MeanSquareTest, IsOfLogarithms) {
  EXPECT_NEAR(mean_square_of({99, 99, 999, 99}, {99, 180, 99, 9}),
              (std::pow(std::log10(1.81), 2) + 2) / 4, 1e-9);
  EXPECT_EQ(mean_square_of({}, {}), 0);
}

TEST(ModelCheck, AModelThatIsNoBetterThanMediansIsNotUsed) {
  const std::vector<Seconds> waited(60, 999);
  const std::vector<double> good(60, 999), bad(60, 9);
  EXPECT_EQ(what_speaks_against(good, bad, waited), std::nullopt);
  EXPECT_THAT(what_speaks_against(bad, good, waited).value_or(""),
              HasSubstr("squared error of logarithms is 4.000 where medians have 0.000"));
  std::vector<double> broken = good;
  broken[7] = std::nan("");
  EXPECT_EQ(what_speaks_against(broken, bad, waited), "the model tells what is no wait");
  EXPECT_THAT(what_speaks_against({1}, {1}, {1}).value_or(""), HasSubstr("only 1 waits"));
}

}  // namespace
}  // namespace hpcbatch::foresight

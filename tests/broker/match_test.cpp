#include "broker/broker.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>

namespace hpcbatch::broker {
namespace {

double longest(const Prices& prices) {
  return *std::max_element(prices.until.begin(), prices.until.end());
}

TEST(Match, GivesTheFastDeviceToWhatGainsMost) {
  // As fast on both, and ten times as fast on the first.
  const std::vector<Work> all{{100, {10, 10}}, {100, {1, 10}}};
  const Prices prices = match({1, 1}, {0, 0}, all);
  EXPECT_NEAR(regret(prices, all[1], 0), 1, 1e-9);
  EXPECT_GT(regret(prices, all[1], 1), 2);
  EXPECT_LE(regret(prices, all[0], 1), 1.1);
}

TEST(Match, SharesOutWhatIsAsFastEverywhere) {
  const std::vector<Work> all{{90, {1, 1, 1}}};
  const Prices prices = match({1, 1, 1}, {0, 0, 0}, all);
  for (const double until : prices.until) EXPECT_NEAR(until, 30, 3);
  for (std::size_t at = 0; at < 3; ++at) EXPECT_LE(regret(prices, all[0], at), 1.1);
}

TEST(Match, CountsWhatIsBusyAndHowMuchThereIs) {
  const std::vector<Work> all{{60, {1, 1}}};
  const Prices prices = match({3, 1}, {0, 20}, all);
  EXPECT_NEAR(longest(prices), 20, 3);
}

TEST(Match, WhatCannotRunSomewhereNeverGoesThere) {
  const std::vector<Work> all{{10, {kNever, 5}}, {10, {1, 1}}};
  const Prices prices = match({1, 1}, {0, 0}, all);
  EXPECT_EQ(regret(prices, all[0], 0), kNever);
  EXPECT_NEAR(regret(prices, all[0], 1), 1, 1e-9);
  EXPECT_NEAR(longest(prices), 50, 5);
}

TEST(Match, NothingWaits) {
  EXPECT_EQ(match({}, {}, {}).of.size(), 0U);
  EXPECT_EQ(longest(match({1, 2}, {0, 0}, {})), 0);
}

/// The optimum of two devices: sorted by their ratio, the one takes from the front, the other from
/// the back.
double optimum_of_two(std::vector<Work> all) {
  std::sort(all.begin(), all.end(), [](const Work& a, const Work& b) {
    return a.cost[0] / a.cost[1] < b.cost[0] / b.cost[1];
  });
  double least = kNever;
  double first = 0, second = 0;
  for (const Work& work : all) second += work.tasks * work.cost[1];
  for (const Work& work : all) {
    const double here = work.tasks * work.cost[0], there = work.tasks * work.cost[1];
    // Such a part of it that both end at once.
    const double part = std::clamp((second - first) / (here + there), 0.0, 1.0);
    least = std::min(least, std::max(first + part * here, second - part * there));
    first += here;
    second -= there;
  }
  return least;
}

TEST(Match, IsNearTheOptimumOfTwoDevices) {
  std::mt19937_64 random(7);
  std::uniform_real_distribution<double> spread(-1, 1);
  for (int round = 0; round < 50; ++round) {
    std::vector<Work> all;
    all.reserve(20);
    for (int kind = 0; kind < 20; ++kind)
      all.push_back({50, {std::exp(spread(random)), std::exp(2 * spread(random) + 1)}});
    const double found = longest(match({1, 1}, {0, 0}, all));
    EXPECT_LE(found, 1.06 * optimum_of_two(all)) << round;
  }
}

}  // namespace
}  // namespace hpcbatch::broker

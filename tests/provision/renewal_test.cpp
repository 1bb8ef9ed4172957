// When the allocation is asked for that follows one of a kept shape.
#include "provision/plan.hpp"

#include <gtest/gtest.h>

namespace hpcbatch::provision {
namespace {

using namespace std::chrono_literals;

const std::vector<Duration> kAboutAnHour{30min, 40min, 50min, 60min, 70min, 80min, 90min};
const foresight::AskingCosts kEven{.waiting = 1, .idle = 1};

Kept one(Duration left, std::vector<Duration> waits = kAboutAnHour) {
  return {.until = 24h, .left = {left}, .waits = std::move(waits)};
}

TEST(Renewals, WhatIsMissingIsAskedForAtOnce) {
  EXPECT_EQ(renewals({.wanted = 3, .until = 1h, .left = {1h, Duration::max()}, .waits = {}}, {}),
            1U);
}

TEST(Renewals, ItIsAskedForWhenItsStartMeetsTheEnd) {
  EXPECT_EQ(renewals(one(3h), kEven), 0U);
  EXPECT_EQ(renewals(one(61min), kEven), 0U);
  EXPECT_EQ(renewals(one(60min), kEven), 1U);
  EXPECT_EQ(renewals(one(80min), {.waiting = 19, .idle = 1}), 1U) << "waiting is dear";
  EXPECT_EQ(renewals(one(40min), {.waiting = 1, .idle = 19}), 0U) << "idling is dear";
}

TEST(Renewals, WhereItWouldStartAtOnceShortlyBeforeTheEnd) {
  EXPECT_EQ(renewals(one(1min, {0s}), kEven), 0U);
  EXPECT_EQ(renewals(one(4s, {0s}), kEven), 1U);
}

TEST(Renewals, WhereNobodyKnowsNothingIsAskedForBeforeTheEnd) {
  EXPECT_EQ(renewals(one(0s, {}), kEven), 0U);
}

TEST(Renewals, OneThatIsQueuedFollowsTheFirst) {
  Kept kept{.wanted = 2, .until = 24h, .left = {5min, 2h, Duration::max()}, .waits = kAboutAnHour};
  EXPECT_EQ(renewals(kept, kEven), 0U);
  kept.left = {5min, 10min, 3h};
  EXPECT_EQ(renewals(kept, kEven), 1U);
}

TEST(Renewals, OneThatIsQueuedHasASuccessorTooWhereWaitsAreLong) {
  Kept kept{.until = 24h, .left = {5min, 50min}, .waits = kAboutAnHour};
  EXPECT_EQ(renewals(kept, kEven), 1U);
  kept.left = {5min, 2h};
  EXPECT_EQ(renewals(kept, kEven), 0U);
}

TEST(Renewals, WhatWouldComeTooLateIsNotAskedFor) {
  EXPECT_EQ(renewals({.until = 59min, .left = {}, .waits = kAboutAnHour}, kEven), 0U);
  EXPECT_EQ(renewals({.until = 61min, .left = {}, .waits = kAboutAnHour}, kEven), 1U);
  EXPECT_EQ(renewals({.until = 0s, .left = {}, .waits = {}}, kEven), 0U);
}

TEST(Renewals, NobodyFollowsOneThatIsThereToTheEnd) {
  Kept kept = one(30min);
  kept.until = 30min;
  EXPECT_EQ(renewals(kept, kEven), 0U);
}

}  // namespace
}  // namespace hpcbatch::provision

#include "foresight/look_ahead.hpp"

#include <gtest/gtest.h>

namespace hpcbatch::foresight {
namespace {

constexpr Seconds kNow = 100 * kDay;

Job job_of(std::int32_t nodes, Seconds limit, std::int32_t user = 1) {
  Job job;
  job.nodes = nodes;
  job.limit = limit;
  job.user = user;
  job.submitted = kNow - kHour;
  return job;
}

TEST(QuantileTest, BetweenValues) {
  EXPECT_EQ(quantile({10}, 0.9), 10);
  EXPECT_EQ(quantile({0, 10}, 0.5), 5);
  EXPECT_EQ(quantile({0, 10, 20}, 1.0), 20);
}

TEST(RunTimesTest, TheMostAlikeSpeak) {
  RunTimes times;
  for (int i = 0; i < 10; ++i) {
    Job job = job_of(1, 10 * kHour, 1);
    job.runs = kHour;
    times.learn(job);
    job.user = 2;
    job.runs = 8 * kHour;
    times.learn(job);
  }
  EXPECT_NEAR(static_cast<double>(times.at(job_of(1, 10 * kHour, 1), 0, 0.5)), kHour, 60);
  EXPECT_NEAR(static_cast<double>(times.at(job_of(1, 10 * kHour, 2), 0, 0.5)), 8 * kHour, 60);
  // Another size of the same user, and somebody unknown.
  EXPECT_NEAR(static_cast<double>(times.at(job_of(4, 10 * kHour, 1), 0, 0.5)), kHour, 60);
  EXPECT_NEAR(static_cast<double>(times.at(job_of(1, 10 * kHour, 9), 0, 0.9)), 8 * kHour, 60);
}

TEST(RunTimesTest, WhoRunsAlreadyRunsLonger) {
  RunTimes times;
  for (int i = 1; i <= 10; ++i) {
    Job job = job_of(1, 10 * kHour);
    job.runs = i * kHour;
    times.learn(job);
  }
  for (const double place : {0.0, 0.3, 0.99}) {
    EXPECT_GT(times.at(job_of(1, 10 * kHour), 5 * kHour, place), 5 * kHour);
    EXPECT_LE(times.at(job_of(1, 10 * kHour), 5 * kHour, place), 10 * kHour);
  }
  // Over its limit it may end at any moment.
  EXPECT_EQ(times.at(job_of(1, kHour), 2 * kHour, 0.5), 2 * kHour + 1);
}

TEST(RunTimesTest, OfNothingAnythingUpToTheLimitIsDrawn) {
  const RunTimes times;
  EXPECT_NEAR(static_cast<double>(times.at(job_of(1, 10 * kHour), 0, 0.5)), 5 * kHour, 60);
}

class LookAheadTest : public ::testing::Test {
 protected:
  LookAheadTest() {
    view_.now = kNow;
    view_.nodes = 4;
    view_.running = {{job_of(4, 10 * kHour), kNow - 2 * kHour}};
    model_.backfill_interval = kMinute;
    pilot_ = job_of(2, kDay, -1);
    pilot_.submitted = kNow;
  }
  QueueView view_;
  ClusterModel model_;
  Job pilot_;
};

TEST_F(LookAheadTest, ByLimitsOneStart) {
  const auto starts = draw_starts(view_, model_, nullptr, pilot_, {});
  EXPECT_EQ(starts, std::vector<Seconds>{kNow + 8 * kHour});
}

TEST_F(LookAheadTest, ByWhatRanBefore) {
  RunTimes times;
  for (int i = 0; i < 10; ++i) {
    Job job = job_of(4, 10 * kHour);
    job.runs = 3 * kHour;
    times.learn(job);
  }
  const auto starts = draw_starts(view_, model_, &times, pilot_, {});
  ASSERT_EQ(starts.size(), 31U);
  EXPECT_NEAR(static_cast<double>(quantile(starts, 0.5) - kNow), kHour, 120);
}

TEST_F(LookAheadTest, BehindThoseThatWait) {
  view_.waiting = {job_of(4, 5 * kHour), job_of(3, 5 * kHour)};
  EXPECT_EQ(draw_starts(view_, model_, nullptr, pilot_, {}).front(), kNow + 18 * kHour);
}

TEST_F(LookAheadTest, TheSameSeedTheSameDraws) {
  RunTimes times;
  for (int i = 1; i <= 10; ++i) {
    Job job = job_of(4, 10 * kHour);
    job.runs = i * kHour;
    times.learn(job);
  }
  const auto one = draw_starts(view_, model_, &times, pilot_, {});
  EXPECT_EQ(one, draw_starts(view_, model_, &times, pilot_, {}));
  EXPECT_LT(one.front(), one.back());
}

TEST_F(LookAheadTest, WhatNeverStartsStartsAtTheHorizon) {
  view_.running.front().job.limit = 400 * kDay;
  EXPECT_EQ(draw_starts(view_, model_, nullptr, pilot_, {}).front(), kNow + 7 * kDay);
}

TEST_F(LookAheadTest, MoreInUseThanIsKnownToBeThere) {
  view_.nodes = 3;
  EXPECT_EQ(draw_starts(view_, model_, nullptr, pilot_, {}).front(), kNow + 8 * kHour);
}

}  // namespace
}  // namespace hpcbatch::foresight

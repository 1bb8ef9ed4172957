// When a link is measured, and what of it is believed.
#include "links/link_server.hpp"

#include <gtest/gtest.h>

namespace hpcbatch {
namespace {

using namespace std::chrono_literals;

class RoundTripTest : public testing::Test {
 protected:
  /// Asks when that is due, and answers after so long.
  std::optional<Duration> takes(Duration trip) {
    std::optional<std::uint64_t> number;
    while (!(number = link_.ask(now_))) now_ += 100ms;
    now_ += trip;
    return link_.answered(*number, now_);
  }

  RoundTrip link_;
  RoundTrip::Moment now_{};
};

TEST_F(RoundTripTest, TheFirstAnswerIsTold) {
  EXPECT_EQ(takes(300ms), 300ms);
  EXPECT_EQ(takes(310ms), std::nullopt) << "that is no change";
}

TEST_F(RoundTripTest, ANearLinkIsNotSpokenOf) {
  for (int i = 0; i < 10; ++i) EXPECT_EQ(takes(Duration{500 * i}), std::nullopt);
}

TEST_F(RoundTripTest, OneLateAnswerIsNotBelieved) {
  for (int i = 0; i < 3; ++i) takes(1ms);
  EXPECT_EQ(takes(5s), std::nullopt);
  EXPECT_EQ(takes(1ms), std::nullopt);
  EXPECT_EQ(takes(1ms), std::nullopt);
}

TEST_F(RoundTripTest, AFirstAnswerThatCameLateIsCorrectedByTheSecond) {
  EXPECT_EQ(takes(5s), 5s);
  EXPECT_EQ(takes(1ms), 1ms);
}

TEST_F(RoundTripTest, WhatLastsIsBelieved) {
  for (int i = 0; i < 3; ++i) takes(1ms);
  takes(400ms);
  EXPECT_EQ(takes(420ms), 400ms);
  takes(1ms);
  EXPECT_EQ(takes(2ms), 2ms);
}

TEST_F(RoundTripTest, OneQuestionAtATimeAndFewOnceItIsSure) {
  ASSERT_TRUE(link_.ask(now_));
  EXPECT_FALSE(link_.ask(now_ + 5s)) << "the answer is under way";
  const auto second = link_.ask(now_ + 60s);
  ASSERT_TRUE(second) << "the answer is lost";
  now_ += 61s;
  EXPECT_TRUE(link_.answered(*second, now_));
  for (int i = 0; i < 2; ++i) takes(1ms);
  EXPECT_FALSE(link_.ask(now_ + 5s));
  EXPECT_TRUE(link_.ask(now_ + 10s));
}

TEST_F(RoundTripTest, OnlyTheLastQuestionsAnswerCounts) {
  const auto first = link_.ask(now_);
  const auto second = link_.ask(now_ + 60s);
  ASSERT_TRUE(first && second);
  EXPECT_TRUE(RoundTrip::is_ours(*first));
  EXPECT_FALSE(RoundTrip::is_ours(7)) << "a pilot's own";
  EXPECT_EQ(link_.answered(*first, now_ + 61s), std::nullopt);
  EXPECT_EQ(link_.answered(*second, now_ + 63s), 3s);
  EXPECT_EQ(link_.answered(*second, now_ + 64s), std::nullopt) << "once";
}

}  // namespace
}  // namespace hpcbatch

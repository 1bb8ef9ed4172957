// When a pilot has had nothing to do for long enough.
#include "pilot/policy/leaving.hpp"

#include <gtest/gtest.h>

namespace hpcbatch::pilot {
namespace {

using namespace std::chrono_literals;

constexpr Time kStart{};

class IdlenessTest : public testing::Test {
 protected:
  void after(Duration time) { now_ += time; }
  void answered_after(Duration time) {
    idle_.owed(true, true, now_);
    after(time);
    idle_.answered(now_);
  }
  std::optional<Duration> left() const {
    const auto end = idle_.ends();
    return end ? std::optional(*end - now_) : std::nullopt;
  }

  Time now_{kStart};
  Idleness idle_{10s, 3min, kStart};
};

TEST_F(IdlenessTest, CountsFromTheLastWork) {
  idle_.welcomed(now_);
  after(100s);
  idle_.worked(now_);
  after(3s);
  EXPECT_EQ(left(), 7s);
}

TEST_F(IdlenessTest, AnEngineThatOwesAnAnswerMaySendMoreWithIt) {
  idle_.welcomed(now_);
  idle_.owed(true, true, now_);
  after(30s);
  EXPECT_GT(left(), 0s);
  idle_.answered(now_);
  EXPECT_EQ(left(), 30s) << "as long as it took";
  after(5s);
  answered_after(1s);
  EXPECT_EQ(left(), 10s);
}

TEST_F(IdlenessTest, AnAnswerIsNotWaitedForWithoutEnd) {
  idle_.welcomed(now_);
  idle_.owed(true, true, now_);
  EXPECT_EQ(left(), 1min);
  for (int i = 0; i < 3; ++i) answered_after(50s);
  EXPECT_LT(left(), 0s) << "however many answers come";
  idle_.worked(now_);
  idle_.owed(true, true, now_);
  after(10min);
  EXPECT_LT(left(), 0s);
}

TEST_F(IdlenessTest, NobodyAnswersByALinkThatIsLost) {
  idle_.welcomed(now_);
  idle_.owed(true, true, now_);
  idle_.owed(true, false, now_);
  EXPECT_EQ(left(), 10s);
}

TEST_F(IdlenessTest, OneThatTookLongToBeTakenInWaitsAsLongForItsFirstWork) {
  EXPECT_EQ(left(), 3min) << "it looks for the engine";
  EXPECT_EQ(idle_.unregistered_ends(), kStart + 10min);
  after(40s);
  idle_.welcomed(now_);
  EXPECT_EQ(left(), 40s);
  EXPECT_FALSE(idle_.unregistered_ends());
  // Another link of the same pilot is no new beginning.
  after(5s);
  idle_.welcomed(now_);
  EXPECT_EQ(left(), 35s);
}

TEST_F(IdlenessTest, StoppedNoTimePasses) {
  idle_.welcomed(now_);
  idle_.owed(true, true, now_);
  after(1h);
  idle_.suspended(1h);
  EXPECT_EQ(left(), 1min);
}

TEST_F(IdlenessTest, MayNeverEnd) {
  Idleness endless{0s, 3min, kStart};
  endless.welcomed(kStart);
  EXPECT_FALSE(endless.ends());
}

TEST_F(IdlenessTest, AnEngineThatStillWantsItSaysSoAgain) {
  idle_.welcomed(now_);
  idle_.stays_until(now_ + 1h, now_);
  after(20min);
  idle_.welcomed(now_);
  EXPECT_EQ(left(), 10s) << "the keep may have ended while the link was away";
}

TEST_F(IdlenessTest, OneThatIsToStayIsThereUntilThen) {
  idle_.welcomed(now_);
  idle_.stays_until(now_ + 1h, now_);
  EXPECT_EQ(left(), 1h);
  after(20min);
  idle_.stays_until(now_ + 10min, now_);
  EXPECT_EQ(left(), 10min);
  idle_.stays_until(now_, now_);
  EXPECT_EQ(left(), 10s) << "it had something to do until now";
  after(5s);
  idle_.stays_until(now_, now_);
  EXPECT_EQ(left(), 5s) << "and had not since";
}

}  // namespace
}  // namespace hpcbatch::pilot

// Moments in words.
#include "documents/moments.hpp"
#include "documents/task_values.hpp"

#include <gtest/gtest.h>

#include <csignal>
#include <cstdlib>
#include <ctime>
#include <stdexcept>

namespace hpcbatch {
namespace {

constexpr double kNow = 1'800'000'000;  // 2027-01-15T08:00:00
constexpr double kHour = 3600, kDay = 86'400;

class MomentsTest : public testing::Test {
 protected:
  MomentsTest() {
    ::setenv("TZ", "UTC", 1);
    ::tzset();
  }
};

TEST_F(MomentsTest, OfThePastAsSlurmReadsThem) {
  EXPECT_EQ(parse_moment("now", kNow), kNow);
  EXPECT_EQ(parse_moment("now-2hours", kNow), kNow - 2 * kHour);
  EXPECT_EQ(parse_moment("now-60", kNow), kNow - 60);
  EXPECT_EQ(parse_moment("today", kNow), kNow - 8 * kHour);
  EXPECT_EQ(parse_moment("2027-01-14T08:00", kNow), kNow - kDay);
  EXPECT_EQ(parse_moment("2027-01-15", kNow), kNow - 8 * kHour);
  EXPECT_EQ(parse_moment("07:59:59", kNow), kNow - 1);
  EXPECT_EQ(parse_moment("uts1700000000", kNow), 1'700'000'000);
  EXPECT_EQ(parse_moment("yesterday evening", kNow), std::nullopt);
  EXPECT_EQ(parse_moment("", kNow), std::nullopt);
}

TEST_F(MomentsTest, ADayThatItsMonthHasNotIsNone) {
  for (const char* text : {"2027-02-29", "2027-02-30T12:00", "2027-04-31", "02/30/27", "0230",
                           "10:00 2027-06-31", "2027-00-10"}) {
    EXPECT_EQ(parse_coming_moment(text, kNow), std::nullopt) << text;
    EXPECT_EQ(parse_moment(text, kNow), std::nullopt) << text;
  }
  EXPECT_EQ(parse_moment("2028-02-29", kNow), 1'835'395'200);
}

TEST_F(MomentsTest, ToComeATimeOfDayThatIsOverIsTomorrows) {
  EXPECT_EQ(parse_coming_moment("16:00", kNow), kNow + 8 * kHour);
  EXPECT_EQ(parse_coming_moment("07:30", kNow), kNow + kDay - kHour / 2);
  EXPECT_EQ(parse_coming_moment("4:30pm", kNow), kNow + 8.5 * kHour);
  EXPECT_EQ(parse_coming_moment("4:30 AM", kNow), kNow + kDay - 3.5 * kHour);
  EXPECT_EQ(parse_coming_moment("midnight", kNow), kNow + 16 * kHour);
  EXPECT_EQ(parse_coming_moment("noon", kNow), kNow + 4 * kHour);
  EXPECT_EQ(parse_coming_moment("MIDNIGHT", kNow), kNow + 16 * kHour);
  EXPECT_EQ(parse_coming_moment("tomorrow 10:00", kNow), kNow + kDay + 2 * kHour);
  EXPECT_EQ(parse_coming_moment("10:00 tomorrow", kNow), kNow + kDay + 2 * kHour);
  EXPECT_EQ(parse_coming_moment("noon tomorrow", kNow), kNow + kDay + 4 * kHour);
  EXPECT_EQ(parse_coming_moment("today 4:30 pm", kNow), kNow + 8.5 * kHour);
  EXPECT_EQ(parse_coming_moment("2027-01-16 07:00", kNow), kNow + kDay - kHour);
  EXPECT_EQ(parse_coming_moment("01/14-08:00", kNow), kNow + 364 * kDay);
  for (const char* text : {"now + 1hour", "now+1 hour", "Now+1HOUR", "09:00:00"})
    EXPECT_EQ(parse_coming_moment(text, kNow), kNow + kHour) << text;
  for (const char* text : {"tomorrow tomorrow", "10:00 11:00", "tomorrow 10:00 x", " ", "16:00PM"})
    EXPECT_EQ(parse_coming_moment(text, kNow), std::nullopt) << text;
  EXPECT_EQ(parse_coming_moment("fika", kNow), kNow + 7 * kHour);
  EXPECT_EQ(parse_coming_moment("teatime", kNow), kNow + 8 * kHour);
  EXPECT_EQ(parse_coming_moment("tomorrow", kNow), kNow + 16 * kHour);
  EXPECT_EQ(parse_coming_moment("now+1hour", kNow), kNow + kHour);
  EXPECT_EQ(parse_coming_moment("now+90", kNow), kNow + 90);
  EXPECT_EQ(parse_coming_moment("2027-01-16T08:00:05", kNow), kNow + kDay + 5);
  EXPECT_EQ(parse_coming_moment("01/14", kNow), kNow + 364 * kDay - 8 * kHour);
  EXPECT_EQ(parse_coming_moment("01/16-08:00", kNow), kNow + kDay);
  EXPECT_EQ(parse_coming_moment("2020-01-01", kNow), 1'577'836'800) << "it is over";
  EXPECT_EQ(parse_coming_moment("soon", kNow), std::nullopt);
}

TEST(EarlySignalTest, HasANameAndATime) {
  const EarlySignal term = read_early_signal("TERM@2m");
  EXPECT_EQ(term.number, SIGTERM);
  EXPECT_EQ(term.before, std::chrono::minutes{2});
  EXPECT_EQ(read_early_signal("SIGUSR1").number, SIGUSR1);
  EXPECT_EQ(read_early_signal("USR2").before, std::chrono::minutes{1});
  EXPECT_EQ(read_early_signal("10@90s").number, 10);
  for (const char* wrong : {"", "TERM@soon", "FOO@2m", "99@1m", "@2m"})
    EXPECT_THROW(read_early_signal(wrong), std::invalid_argument) << wrong;
}

TEST(SignalTest, HasANameOrANumber) {
  for (const char* usr1 : {"USR1", "SIGUSR1", "usr1", "SigUsr1", "10"})
    EXPECT_EQ(parse_signal(usr1), SIGUSR1) << usr1;
  EXPECT_EQ(parse_signal("64"), 64);
  for (const char* wrong : {"", "0", "-1", "65", "10x", "SIG", "USR3", "USR1 "})
    EXPECT_EQ(parse_signal(wrong), 0) << wrong;
}

TEST(DelayTest, StandsBehindAnId) {
  EXPECT_EQ(delay_at("12+10m"), 2U);
  EXPECT_EQ(delay_at("12"), 2U);
  EXPECT_EQ(delay_at("c++"), 3U) << "a name of a task";
}

}  // namespace
}  // namespace hpcbatch

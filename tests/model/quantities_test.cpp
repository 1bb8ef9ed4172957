// Durations and sizes as people write them: what is read, what is refused, what is shown.
#include "model/quantities.hpp"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace hpcbatch {
namespace {

using namespace std::chrono_literals;

TEST(Durations, ReadWhatPeopleWrite) {
  EXPECT_EQ(parse_duration("90"), 90s);
  EXPECT_EQ(parse_duration("90s"), 90s);
  EXPECT_EQ(parse_duration("0"), 0s);
  EXPECT_EQ(parse_duration("1.5h"), 90min);
  EXPECT_EQ(parse_duration("1h30m"), 90min);
  EXPECT_EQ(parse_duration("2d"), 48h);
  EXPECT_EQ(parse_duration("500ms"), 500ms);
  EXPECT_EQ(parse_duration(".5m"), 30s);
  EXPECT_EQ(parse_duration("01:30:00"), 90min);
  EXPECT_EQ(parse_duration("1-12:00:00"), 36h);
  EXPECT_EQ(parse_duration("10min"), 10min);
}

TEST(Durations, RefuseWhatIsNone) {
  for (const char* text :
       {"",         "h",        "-5",        "+5",       "5x",     "5 s",     " 5",
        "1e5",      "inf",      "nan",       "0x10",     "1:30",   "1:2:3:4", "1-2",
        "-1:00:00", "1h:00:00", "1h1:00:00", "9999999d", "1e300h", "5,5",     "1..5h"}) {
    EXPECT_EQ(parse_duration(text), std::nullopt) << text;
  }
}

TEST(Durations, LeaveNoDoubtWhatABareNumberMeans) {
  EXPECT_EQ(parse_duration("1h30"), std::nullopt) << "minutes to some, seconds to others";
}

TEST(Durations, ShowShortAndRound) {
  EXPECT_EQ(show_duration(0s), "0s");
  EXPECT_EQ(show_duration(250us), "250us");
  EXPECT_EQ(show_duration(250ms), "250ms");
  EXPECT_EQ(show_duration(42s), "42s");
  EXPECT_EQ(show_duration(1500ms), "1.5s");
  EXPECT_EQ(show_duration(59990ms), "59.9s");
  EXPECT_EQ(show_duration(60s), "1m");
  EXPECT_EQ(show_duration(90s), "1m30s");
  EXPECT_EQ(show_duration(90min), "1h30m");
  EXPECT_EQ(show_duration(49h), "2d1h");
  EXPECT_EQ(show_duration(-90s), "-1m30s");
}

TEST(Durations, CanBeReadBackWhereTheyShowAll) {
  for (const Duration whole : std::vector<Duration>{1s, 59s, 61s, 90min, 23h + 59min, 24h, 49h}) {
    EXPECT_EQ(parse_duration(show_duration(whole)), whole) << show_duration(whole);
  }
}

TEST(Sizes, ReadWhatPeopleWrite) {
  EXPECT_EQ(parse_size("100"), 100U);
  EXPECT_EQ(parse_size("100B"), 100U);
  EXPECT_EQ(parse_size("512M"), 512U << 20);
  EXPECT_EQ(parse_size("512MB"), 512U << 20);
  EXPECT_EQ(parse_size("8g"), std::uint64_t{8} << 30);
  EXPECT_EQ(parse_size("1.5TiB"), std::uint64_t{1536} << 30);
  EXPECT_EQ(parse_size("0"), 0U);
}

TEST(Sizes, RefuseWhatIsNone) {
  for (const char* text :
       {"", "G", "-1G", "1X", "1GG", "1iB", "1GiBB", "1 G", "1e9", "999999999T", "nan", "1G2M"}) {
    EXPECT_EQ(parse_size(text), std::nullopt) << text;
  }
}

TEST(Sizes, ShowShort) {
  EXPECT_EQ(show_size(0), "0B");
  EXPECT_EQ(show_size(1023), "1023B");
  EXPECT_EQ(show_size(1024), "1K");
  EXPECT_EQ(show_size(1536), "1.5K");
  EXPECT_EQ(show_size((std::uint64_t{1} << 20) - 1), "1.0M");
  EXPECT_EQ(show_size(std::uint64_t{8} << 30), "8G");
}

}  // namespace
}  // namespace hpcbatch

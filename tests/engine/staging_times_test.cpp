// How long files were on their way, of which task.
#include "engine/state/task_partition.hpp"

#include <gtest/gtest.h>

#include <map>
#include <random>

namespace hpcbatch {
namespace {

using namespace std::chrono_literals;

const Time kBegin = Time{} + std::chrono::hours{500'000};

TEST(StagingTimes, IsFromTheAskingToTheArrivalAndToldOnce) {
  StagingTimes times;
  times.began(IndexRange{1, 10}, kBegin);
  times.arrived(IndexRange{1, 4}, kBegin + 2s);
  times.arrived(IndexRange{5, 10}, kBegin + 9s);
  EXPECT_EQ(times.take(3), 2s);
  EXPECT_EQ(times.take(3), Duration{});
  EXPECT_EQ(times.take(4), 2s);
  EXPECT_EQ(times.take(5), 9s);
  EXPECT_EQ(times.take(11), Duration{});
  EXPECT_EQ(times.take(0), Duration{});
}

TEST(StagingTimes, WhatComesTwiceTookAsLongAsTheLastTime) {
  StagingTimes times;
  times.began(IndexRange{1, 9}, kBegin);
  times.arrived(IndexRange{1, 9}, kBegin + 5s);
  times.began(IndexRange{4, 5}, kBegin + 60s);
  times.arrived(IndexRange{4, 5}, kBegin + 61s);
  for (std::uint32_t i = 1; i <= 9; ++i) EXPECT_EQ(times.take(i), i == 4 || i == 5 ? 1s : 5s) << i;
  EXPECT_EQ(times.size(), 0U);
}

TEST(StagingTimes, WhatDoesNotComeIsForgotten) {
  StagingTimes times;
  times.began(IndexRange{1, 9}, kBegin);
  times.given_up(IndexRange{1, 9});
  times.arrived(IndexRange{1, 9}, kBegin + 5s);
  EXPECT_EQ(times.take(5), Duration{});
  EXPECT_EQ(times.size(), 0U);
}

TEST(StagingTimes, WhateverTheOrderItIsAsATableWouldHaveIt) {
  std::mt19937 random(7);
  const auto below = [&random](unsigned bound) { return random() % bound; };
  StagingTimes times;
  std::map<std::uint32_t, Time> coming;
  std::map<std::uint32_t, Duration> took;
  Time now = kBegin;
  for (int step = 0; step < 20'000; ++step) {
    now += std::chrono::seconds{1 + below(9)};
    const auto first = static_cast<std::uint32_t>(1 + below(60));
    const auto last = static_cast<std::uint32_t>(first + below(12));
    const IndexSet range = IndexRange{first, last};
    switch (below(4)) {
      case 0:
        times.given_up(range);  // nothing is asked for twice at a time
        times.began(range, now);
        for (std::uint32_t i = first; i <= last; ++i) coming[i] = now;
        break;
      case 1:
        times.arrived(range, now);
        for (std::uint32_t i = first; i <= last; ++i) {
          if (const auto at = coming.find(i); at != coming.end()) {
            took[i] = now - at->second;
            coming.erase(at);
          }
        }
        break;
      case 2:
        times.given_up(range);
        for (std::uint32_t i = first; i <= last; ++i) coming.erase(i);
        break;
      default:
        ASSERT_EQ(times.take(first), took.contains(first) ? took[first] : Duration{}) << step;
        took.erase(first);
    }
  }
}

}  // namespace
}  // namespace hpcbatch

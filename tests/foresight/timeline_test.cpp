#include "foresight/cluster.hpp"

#include <gtest/gtest.h>

#include <random>

namespace hpcbatch::foresight {
namespace {

TEST(TimelineTest, TheFirstPlaceThatIsLongEnough) {
  Timeline timeline(10, 8);
  timeline.reset(2);
  timeline.frees(3, 4);
  timeline.settle();
  EXPECT_EQ(timeline.earliest(2, 5), 0U);
  EXPECT_EQ(timeline.earliest(3, 5), 3U);
  timeline.take(5, 2, 4);
  EXPECT_EQ(timeline.earliest(3, 2), 3U);
  EXPECT_EQ(timeline.earliest(3, 3), 7U);
}

TEST(TimelineTest, BeyondTheLastSlotAllIsFree) {
  Timeline timeline(4, 4);
  timeline.reset(0);
  timeline.frees(3, 4);
  timeline.settle();
  EXPECT_EQ(timeline.earliest(4, 100), 3U);
  EXPECT_EQ(timeline.earliest(5, 1), std::nullopt);
}

TEST(TimelineTest, AsASlowSearchWouldFind) {
  std::mt19937 random(3);
  for (int round = 0; round < 200; ++round) {
    Timeline timeline(20, 9);
    timeline.reset(static_cast<std::int32_t>(random() % 4));
    for (int i = 0; i < 5; ++i)
      timeline.frees(1 + random() % 19, static_cast<std::int32_t>(random() % 2));
    timeline.settle();
    for (int job = 0; job < 12; ++job) {
      const auto nodes = static_cast<std::int32_t>(1 + random() % 5);
      const std::size_t length = 1 + random() % 8;
      std::optional<std::size_t> slow;
      for (std::size_t from = 0; from < timeline.size() && !slow; ++from) {
        bool fits = true;
        for (std::size_t i = from; i < std::min(timeline.size(), from + length); ++i)
          fits = fits && timeline.free_at(i) >= nodes;
        if (fits) slow = from;
      }
      const auto found = timeline.earliest(nodes, length);
      ASSERT_EQ(found, slow);
      if (found) timeline.take(*found, length, nodes);
    }
  }
}

}  // namespace
}  // namespace hpcbatch::foresight

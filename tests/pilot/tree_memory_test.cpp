// What processes share is counted once, and counting takes little of the time.
#include "pilot/policy/tree_memory.hpp"

#include <gtest/gtest.h>

namespace hpcbatch::pilot {
namespace {

using namespace std::chrono_literals;

constexpr std::uint64_t kMegabyte = 1'000'000;

TEST(TreeMemoryTest, EstimatesByWhatWasCountedLast) {
  TreeMemory memory;
  const Time start{};
  EXPECT_EQ(memory.estimate(1000), 1000U);
  EXPECT_TRUE(memory.is_due(1000, 1000, start));
  memory.counted(100 * kMegabyte, 10 * kMegabyte, start, start);
  EXPECT_EQ(memory.estimate(200 * kMegabyte), 20 * kMegabyte);
  EXPECT_EQ(memory.exact(), 10 * kMegabyte);
}

TEST(TreeMemoryTest, IsCountedAgainForANewPeakAlone) {
  TreeMemory memory;
  const Time start{};
  memory.counted(100 * kMegabyte, 10 * kMegabyte, start, start);
  EXPECT_FALSE(memory.is_due(90 * kMegabyte, 10 * kMegabyte, start + 1s));
  EXPECT_TRUE(memory.is_due(110 * kMegabyte, 10 * kMegabyte, start + 1s));
}

TEST(TreeMemoryTest, TakesATwentiethOfTheTime) {
  TreeMemory memory;
  const Time start{};
  memory.counted(100, 10, start, start + 300ms);
  EXPECT_FALSE(memory.can_afford(start + 5900ms));
  EXPECT_TRUE(memory.can_afford(start + 6000ms));
}

TEST(TreeMemoryTest, TakesHalfOfItWhereATaskSeemsToBeOverItsLimit) {
  TreeMemory memory;
  const Time start{};
  memory.counted(100, 10, start, start + 300ms);
  EXPECT_FALSE(memory.can_decide(start + 599ms));
  EXPECT_TRUE(memory.can_decide(start + 600ms));
}

TEST(TreeMemoryTest, AKernelThatDoesNotTellIsAskedNoMoreThanItCosts) {
  TreeMemory memory;
  const Time start{};
  memory.counted(1000, 0, start, start + 1s);
  EXPECT_EQ(memory.estimate(1000), 1000U);
  EXPECT_FALSE(memory.exact());
  EXPECT_FALSE(memory.is_due(2000, 0, start + 2s));
}

}  // namespace
}  // namespace hpcbatch::pilot

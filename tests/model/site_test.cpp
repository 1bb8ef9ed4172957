// What tasks can have of a shape, and which task could ever run in one.
#include "model/site.hpp"

#include <gtest/gtest.h>

namespace hpcbatch {
namespace {

using namespace std::chrono_literals;

constexpr std::int64_t kGiga = std::int64_t{1} << 30;

Shape cpu_shape() {
  Shape shape{.name = "cpu", .walltime = 1h, .tags = {"fast", "ssd"}};
  shape.capacity.set(kCpus, Amount::of(8));
  shape.capacity.set(kMemory, Amount::of(100 * kGiga));
  return shape;
}

Needs needs_of(std::int64_t cpus, std::int64_t memory = 0, std::optional<Duration> time = {}) {
  Needs needs;
  needs.amounts.set(kCpus, Amount::of(cpus));
  needs.amounts.set(kMemory, Amount::of(memory));
  needs.time = time;
  return needs;
}

TEST(Shapes, KeepMemoryForThePilot) {
  EXPECT_EQ(usable(cpu_shape()).get(kMemory).whole(), 98 * kGiga);
  EXPECT_EQ(pilots_own_memory(kGiga), 100 * 1024 * 1024) << "at least 100 MB";
  EXPECT_EQ(pilots_own_memory(1024), 1024) << "never more than there is";
  EXPECT_EQ(usable(cpu_shape()).get(kCpus), Amount::of(8));
}

TEST(Shapes, KeepTimeForTheStartAndTheEnd) {
  EXPECT_EQ(longest_task(cpu_shape()), 1h - 90s - 30s);
  Shape brief = cpu_shape();
  brief.walltime = 100s;
  EXPECT_EQ(longest_task(brief), 90s - 2s);
  brief.walltime = {};
  EXPECT_EQ(longest_task(brief), std::nullopt) << "no end";
}

TEST(Shapes, CouldRunWhatFitsInAllRespects) {
  const Shape shape = cpu_shape();
  EXPECT_TRUE(could_run(needs_of(8, 98 * kGiga, 1h - 2min), shape));
  EXPECT_FALSE(could_run(needs_of(9), shape));
  EXPECT_FALSE(could_run(needs_of(1, 99 * kGiga), shape));
  EXPECT_FALSE(could_run(needs_of(1, 0, 1h - 90s), shape)) << "no pilot starts at once";
  Needs tagged = needs_of(1);
  tagged.tags = {"ssd"};
  EXPECT_TRUE(could_run(tagged, shape));
  tagged.tags = {"slow", "ssd"};
  EXPECT_FALSE(could_run(tagged, shape));
  Needs wide = needs_of(1);
  wide.nodes = 2;
  EXPECT_FALSE(could_run(wide, shape));
}

}  // namespace
}  // namespace hpcbatch

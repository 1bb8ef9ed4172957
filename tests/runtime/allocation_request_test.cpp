// What a batch job asks for, of what its shape has.
#include "sites/allocation_request.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace hpcbatch {
namespace {

using testing::ElementsAre;
using testing::Pair;

Shape shape_of(const std::string& gpus) {
  Shape shape{.name = "s"};
  shape.capacity.set(kMemory, Amount::of(std::int64_t{4} << 30));
  shape.capacity.set(gpus, Amount::of(2));
  return shape;
}

TEST(AllocationRequest, GpusWithoutAKindHaveNoName) {
  EXPECT_THAT(allocation_request({}, shape_of("gpus/a100"), "n", {}).gpus,
              ElementsAre(Pair("a100", 2)));
  EXPECT_THAT(allocation_request({}, shape_of("gpus/gpu"), "n", {}).gpus, ElementsAre(Pair("", 2)));
}

TEST(AllocationRequest, ASiteMayLeaveMemoryOut) {
  Site site;
  EXPECT_EQ(allocation_request(site, shape_of("gpus/a100"), "n", {}).memory,
            std::uint64_t{4} << 30);
  site.asks_for_memory = false;
  EXPECT_EQ(allocation_request(site, shape_of("gpus/a100"), "n", {}).memory, 0U);
}

}  // namespace
}  // namespace hpcbatch

// How a data set is cut into parts.
#include "split/split_planner.hpp"

#include <gtest/gtest.h>

#include <limits>

namespace hpcbatch::split {
namespace {

TEST(Parts, HaveSoManyFiles) {
  EXPECT_EQ(cut_into_parts({1, 1, 1, 1, 1}, {.files = 2}),
            (std::vector<Part>{{"000001", 0, 2}, {"000002", 2, 2}, {"000003", 4, 1}}));
  EXPECT_TRUE(cut_into_parts({}, {.files = 2}).empty());
}

TEST(Parts, HaveNoMoreBytesButForOneFileAlone) {
  EXPECT_EQ(
      cut_into_parts({4, 4, 4, 100, 1}, {.files = 10, .bytes = 9}),
      (std::vector<Part>{{"000001", 0, 2}, {"000002", 2, 1}, {"000003", 3, 1}, {"000004", 4, 1}}));
  constexpr auto kMost = std::numeric_limits<std::uint64_t>::max();
  EXPECT_EQ(cut_into_parts({kMost, kMost}, {.files = 10, .bytes = 10}).size(), 2U);
  EXPECT_EQ(cut_into_parts({0, 0, 0}, {.files = 10, .bytes = 1}).size(), 1U);
}

TEST(Parts, HalvesHaveAllOfIt) {
  const auto [one, other] = halves_of({"000002", 3, 5});
  EXPECT_EQ(one, (Part{"000002a", 3, 2}));
  EXPECT_EQ(other, (Part{"000002b", 5, 3}));
}

}  // namespace
}  // namespace hpcbatch::split

// Which task is to end for its memory, as a table.
#include "pilot/policy/memory_victims.hpp"

#include <gtest/gtest.h>

namespace hpcbatch::pilot {
namespace {

MemoryUse use(unsigned n, std::uint64_t used, std::uint64_t granted, bool is_limit = false) {
  return {AttemptId{n, 0, 1, 1}, used, granted, is_limit ? granted : 0};
}

std::string victims(const std::vector<MemoryUse>& uses, std::uint64_t capacity) {
  std::string text;
  for (const MemoryVictim& victim : memory_victims(uses, capacity))
    text += std::to_string(victim.id.array) + " ";
  return text;
}

TEST(MemoryWatch, EndsWhoIsOverItsLimitAndElseTheFurthestAboveItsShare) {
  EXPECT_EQ(victims({}, 100), "");
  EXPECT_EQ(victims({use(1, 60, 50), use(2, 10, 50)}, 100), "") << "there is room";
  EXPECT_EQ(victims({use(1, 51, 50, true), use(2, 10, 50)}, 100), "1 ");
  EXPECT_EQ(victims({use(1, 50, 50, true)}, 100), "");
  EXPECT_EQ(victims({use(1, 60, 50), use(2, 45, 20), use(3, 5, 30)}, 100), "2 ");
  EXPECT_EQ(victims({use(1, 60, 0), use(2, 45, 40)}, 100), "1 ")
      << "without a share all of it is too much";
  EXPECT_EQ(victims({use(1, 51, 50, true), use(2, 90, 50)}, 100), "1 ")
      << "with the first gone there is room";
  EXPECT_EQ(victims({use(1, 60, 50, true), use(2, 101, 50)}, 100), "1 2 ");
  EXPECT_EQ(victims({use(1, 1000, 50)}, 0), "") << "the node's memory is not known";
  EXPECT_EQ(victims({use(1, 60, 60), use(2, 60, 60)}, 100), "")
      << "nobody has more than was promised";
}

}  // namespace
}  // namespace hpcbatch::pilot

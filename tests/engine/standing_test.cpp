// A single task keeps its place without sets; to those who look it is an array like any other.
#include "engine/state/task_partition.hpp"

#include <gtest/gtest.h>

namespace hpcbatch {
namespace {

class StandingTest : public testing::TestWithParam<IndexSet> {
 protected:
  const IndexSet& all() const { return GetParam(); }
  std::uint32_t first() const { return all().ranges().back().first; }
};

TEST_P(StandingTest, MovesFromPlaceToPlace) {
  TaskPartition tasks(all());
  EXPECT_EQ(tasks.all(), all());
  EXPECT_EQ(tasks.open(), all());
  EXPECT_TRUE(tasks.blocked().empty()) << "new ones are nowhere: they may be in the queue";
  for (const auto place : {TaskPartition::Blocked, TaskPartition::Held, TaskPartition::Leased}) {
    tasks.add(place, all());
    EXPECT_EQ(tasks.in(place), all());
    EXPECT_EQ(tasks.open(), all());
    tasks.remove(place, all());
    EXPECT_TRUE(tasks.in(place).empty());
  }
  tasks.add(TaskPartition::NotOk, all());
  EXPECT_TRUE(tasks.is_over());
  EXPECT_TRUE(tasks.open().empty());
}

TEST_P(StandingTest, StaysWhereItIsWhenOthersAreTakenElsewhere) {
  TaskPartition tasks(all());
  tasks.add(TaskPartition::Leased, all());
  tasks.remove(TaskPartition::Held, all());
  tasks.remove(TaskPartition::Leased, IndexSet());
  tasks.add(TaskPartition::Ok, IndexSet());
  EXPECT_EQ(tasks.leased(), all());
  EXPECT_FALSE(tasks.is_over());
}

TEST_P(StandingTest, IsOverWhenAllHaveEnded) {
  TaskPartition tasks(all());
  tasks.add(TaskPartition::Ok, IndexRange{first(), first()});
  IndexSet rest = all();
  rest.remove(first());
  EXPECT_EQ(tasks.open(), rest);
  EXPECT_EQ(tasks.is_over(), rest.empty());
  tasks.add(TaskPartition::NotOk, rest);
  EXPECT_TRUE(tasks.is_over());
}

INSTANTIATE_TEST_SUITE_P(, StandingTest,
                         testing::Values(IndexSet(IndexRange{0, 0}), IndexSet(IndexRange{1, 1}),
                                         IndexSet(IndexRange{0, 1}), IndexSet(IndexRange{1, 100})),
                         [](const auto& one) {
                           const IndexRange range = one.param.ranges().front();
                           return "From" + std::to_string(range.first) + "To" +
                                  std::to_string(range.last);
                         });

}  // namespace
}  // namespace hpcbatch

// What is told when: behind which commits, and whether these are on disk.
#include "loop/writer.hpp"

#include <gtest/gtest.h>

namespace hpcbatch {
namespace {

using Order = GroupCommit<int, int>;

TEST(CommitOrder, WhatIsToBeOnDiskInItsTurnMakesOneStepOfTwo) {
  Order order;
  order.after_written(1, [] {});
  order.after_durable([] {}, false);
  EXPECT_TRUE(order.take().in_two_steps());
  order.done();
  order.after_written(1, [] {});
  order.after_written(
      2, [] {}, true);
  order.after_durable([] {}, false);
  const Order::Batch batch = order.take();
  EXPECT_FALSE(batch.in_two_steps());
  EXPECT_TRUE(batch.needs_disk());
  EXPECT_EQ(batch.written.size(), 2U);
}

TEST(CommitOrder, OneThatIsToBeOnDiskIsCommittedWithNothingToWrite) {
  Order order;
  order.after_written(
      1, [] {}, true);
  EXPECT_EQ(order.due(), Order::Due::Now);
  EXPECT_TRUE(order.take().needs_commit());
}

TEST(CommitOrder, LeasesOfTasksThatStartOnceWaitForTheDisk) {
  SendLeases send{{}, std::vector<SendLeases::Lease>(2)};
  EXPECT_EQ(order_of(send), WaitsFor::Written);
  send.leases.back().runs_once = true;
  EXPECT_EQ(order_of(send), WaitsFor::WrittenToDisk);
}

}  // namespace
}  // namespace hpcbatch

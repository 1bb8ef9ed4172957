// One owner's work in its order, and nobody behind another's.
#include "dropbox/dropbox.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <future>

namespace hpcbatch {
namespace {

TEST(OwnerLanes, OneThatIsBusyHoldsUpOnlyItsOwn) {
  std::promise<void> goes_on;
  std::promise<void> other;
  std::vector<int> order;
  {
    OwnerLanes lanes(2);
    lanes.post(1, [&, wait = goes_on.get_future().share()] {
      wait.wait();
      order.push_back(1);
    });
    for (int i = 2; i < 5; ++i) lanes.post(1, [&order, i] { order.push_back(i); });
    lanes.post(2, [&] { other.set_value(); });
    EXPECT_EQ(other.get_future().wait_for(std::chrono::seconds(20)), std::future_status::ready);
    EXPECT_TRUE(order.empty());
    goes_on.set_value();
  }
  EXPECT_EQ(order, (std::vector<int>{1, 2, 3, 4})) << "its end waits for what was given";
}

TEST(OwnerLanes, OwnersTakeTurnsOnFewThreads) {
  std::promise<void> begin;
  std::vector<int> order;
  {
    OwnerLanes lanes(1);
    lanes.post(1, [wait = begin.get_future().share()] { wait.wait(); });
    for (int i = 0; i < 2; ++i) lanes.post(1, [&] { order.push_back(1); });
    for (int i = 0; i < 2; ++i) lanes.post(2, [&] { order.push_back(2); });
    begin.set_value();
  }
  EXPECT_EQ(order, (std::vector<int>{2, 1, 2, 1}));
}

TEST(OwnerLanes, ManyOwnersOnFewThreads) {
  std::atomic<int> done{0};
  std::atomic<int> at_once{0};
  std::atomic<int> most{0};
  {
    OwnerLanes lanes(3);
    for (unsigned i = 0; i < 3'000; ++i) {
      lanes.post(i % 100, [&] {
        const int now = ++at_once;
        for (int seen = most; now > seen && !most.compare_exchange_weak(seen, now);) {
        }
        --at_once;
        ++done;
      });
    }
  }
  EXPECT_EQ(done, 3'000);
  EXPECT_LE(most, 3);
}

}  // namespace
}  // namespace hpcbatch

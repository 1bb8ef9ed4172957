// A lane works in order, and can be left behind while it hangs.
#include "loop/lane.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <future>
#include <memory>
#include <vector>

namespace hpcbatch {
namespace {

TEST(Lane, DoesItsWorkInOrder) {
  std::vector<int> done;
  std::promise<void> all;
  Lane lane;
  for (int i = 0; i < 100; ++i) lane.run([&done, i] { done.push_back(i); });
  lane.run([&] { all.set_value(); });
  all.get_future().wait();
  ASSERT_EQ(done.size(), 100U);
  EXPECT_TRUE(std::is_sorted(done.begin(), done.end()));
}

TEST(Lane, IsLeftBehindInTheMiddleOfACall) {
  auto release = std::make_shared<std::promise<void>>();
  auto started = std::make_shared<std::promise<void>>();
  auto returned = std::make_shared<std::promise<void>>();
  {
    Lane lane;
    lane.run([release, started, returned] {
      started->set_value();
      release->get_future().wait();
      returned->set_value();
    });
    started->get_future().wait();
    lane.leave_behind();
  }
  release->set_value();
  returned->get_future().wait();
}

}  // namespace
}  // namespace hpcbatch

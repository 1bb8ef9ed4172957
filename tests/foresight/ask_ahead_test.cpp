#include "foresight/look_ahead.hpp"

#include <gtest/gtest.h>

namespace hpcbatch::foresight {
namespace {

TEST(AskAheadTest, WhenTheLateStartsMeetTheEndOfTheSupply) {
  const AskingCosts costs;
  EXPECT_DOUBLE_EQ(costs.quantile(), 0.95);
  const std::vector<Seconds> starts{kHour, 2 * kHour, 3 * kHour};
  EXPECT_FALSE(is_time_to_ask(starts, 4 * kHour, costs));
  EXPECT_TRUE(is_time_to_ask(starts, 2 * kHour + 30 * kMinute, costs));
  EXPECT_FALSE(is_time_to_ask({}, kHour, costs));
}

TEST(AskAheadTest, NotWhileTooMuchMightBeIdle) {
  // One draw in ten says that it takes two days more, the others that it starts at once.
  std::vector<Seconds> starts(9, 0);
  starts.push_back(2 * kDay);
  EXPECT_FALSE(is_time_to_ask(starts, 10 * kHour, {}));
  EXPECT_TRUE(is_time_to_ask(starts, kHour, {}));
  AskingCosts generous;
  generous.most_idle = 10 * kHour;
  EXPECT_TRUE(is_time_to_ask(starts, 10 * kHour, generous));
}

TEST(AskAheadTest, IdleTimeThatIsDearIsAvoided) {
  AskingCosts costs;
  costs.waiting = 1;
  costs.idle = 3;
  const std::vector<Seconds> starts{kHour, 2 * kHour, 3 * kHour, 4 * kHour, 5 * kHour};
  EXPECT_TRUE(is_time_to_ask(starts, 2 * kHour, costs));
  EXPECT_FALSE(is_time_to_ask(starts, 3 * kHour, costs));
}

}  // namespace
}  // namespace hpcbatch::foresight

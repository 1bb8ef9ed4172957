// What emulated work takes, and how it goes beside other work.
#include "fakegpu/node.hpp"

#include <gtest/gtest.h>

#include <sstream>
#include <stdexcept>

namespace hpcbatch::fakegpu {
namespace {

TEST(FakeWork, IsReadFromATable) {
  std::istringstream text(
      "# class kind\nresnet v100 12.5 9000 80\n\nresnet k80 50 9000 100 # slow\n");
  const CostTable table = read_costs(text);
  ASSERT_EQ(table.size(), 2U);
  const Cost cost = table.at({"resnet", "v100"});
  EXPECT_EQ(cost.seconds, 12.5);
  EXPECT_EQ(cost.memory, std::uint64_t{9000} << 20);
  EXPECT_EQ(cost.busy, 80U);
  std::istringstream bad("resnet v100 12.5 9000 80\nresnet k80 fast\n");
  EXPECT_THROW(read_costs(bad), std::invalid_argument);
}

TEST(FakeWork, SharesWhatIsThere) {
  EXPECT_EQ(speed_beside(100, 0), 1);
  EXPECT_NEAR(speed_beside(30, 40), 0.95, 1e-9) << "there is room for both";
  EXPECT_NEAR(speed_beside(100, 100), 0.475, 1e-9);
  EXPECT_LT(speed_beside(100, 300), speed_beside(100, 100));
}

}  // namespace
}  // namespace hpcbatch::fakegpu

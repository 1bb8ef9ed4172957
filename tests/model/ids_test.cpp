// Names of things as people see them, and back.
#include "model/ids.hpp"

#include <gtest/gtest.h>

namespace hpcbatch {
namespace {

TEST(Ids, ShowTasks) {
  EXPECT_EQ(to_string(TaskId{ArrayId{12}, 0}), "12");
  EXPECT_EQ(to_string(TaskId{ArrayId{12}, 345}), "12.345");
}

TEST(Ids, ShowAndReadPilots) {
  const PilotId pilot{AllocationId{"hab12"}, 3};
  EXPECT_EQ(to_string(pilot), "hab12.3");
  EXPECT_EQ(parse_pilot("hab12.3"), pilot);
  for (const char* text :
       {"", "hab12", ".3", "hab12.", "hab12.x", "hab12.3x", "hab12.-1", "hab12.99999999999"}) {
    EXPECT_EQ(parse_pilot(text), std::nullopt) << text;
  }
}

}  // namespace
}  // namespace hpcbatch

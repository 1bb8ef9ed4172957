// Each form that a batch system writes is the time that it means there.
#include <hpcbatch/batch_time.hpp>

#include <gtest/gtest.h>

namespace hpcbatch {
namespace {

using namespace std::chrono_literals;

TEST(BatchTime, SlurmsForms) {
  EXPECT_EQ(slurm_time("2-03:04:05"), 51h + 4min + 5s);
  EXPECT_EQ(slurm_time("2-03:04"), 51h + 4min);
  EXPECT_EQ(slurm_time("2-03"), 51h);
  EXPECT_EQ(slurm_time("03:04:05"), 3h + 4min + 5s);
  EXPECT_EQ(slurm_time("100:00:00"), 100h);
  EXPECT_EQ(slurm_time("90:05"), 90min + 5s);
  EXPECT_EQ(slurm_time("90"), 90min);
  EXPECT_EQ(slurm_time("0"), 0s);
}

TEST(BatchTime, PbssForms) {
  EXPECT_EQ(pbs_time("01:30:00"), 90min);
  EXPECT_EQ(pbs_time("90:00"), 90min);
  EXPECT_EQ(pbs_time("5400"), 90min);
  EXPECT_EQ(pbs_time("1-00:00:00"), std::nullopt);
}

TEST(BatchTime, WhatIsNone) {
  for (const char* text :
       {"", "soon", "UNLIMITED", "INVALID", "1:2:3:4", "1-", "-1", "x-1", "1:-2", "1:", ":1",
        "1::2", "1-2-3", "1.5", "+1", " 1", "1 ", "99999999999999-00", "9999999999999999"}) {
    EXPECT_EQ(slurm_time(text), std::nullopt) << text;
    EXPECT_EQ(pbs_time(text), std::nullopt) << text;
  }
}

}  // namespace
}  // namespace hpcbatch

// What a batch system says of batch jobs is data: bounded, printable, and none of it a name of ours
// that we have not given.
#include "sites/allocation_request.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace hpcbatch {
namespace {

using testing::ElementsAre;

TEST(PlainJobs, HaveNamesThatWeGive) {
  std::vector<BatchJob> jobs;
  for (const char* name : {"hbQ7x", "", "hbQ7x\n", "hb|x", "hbQ7x0123456789a", "hb\xff"})
    jobs.push_back({.name = name, .number = "1", .reason = {}, .time_left = {}, .nodes = {}});
  jobs.push_back(
      {.name = std::string("hb\0x", 4), .number = "1", .reason = {}, .time_left = {}, .nodes = {}});
  jobs = plain_jobs(std::move(jobs));
  ASSERT_EQ(jobs.size(), 1U);
  EXPECT_EQ(jobs.front().name, "hbQ7x");
}

TEST(PlainJobs, HoldNothingThatCannotBeShown) {
  const std::string odd("a\0b\xff\x1b[2J\n", 9);
  const auto jobs =
      plain_jobs({{.name = "hbA",
                   .number = odd,
                   .reason = odd + std::string(100'000, 'x'),
                   .time_left = {},
                   .nodes = {"n1", "", "n 2", "n\n3", "n\xff", std::string(256, 'n'), "r[1-"}}});
  ASSERT_EQ(jobs.size(), 1U);
  EXPECT_EQ(jobs[0].number, "a\\x00b\\xff\\x1b[2J\\n");
  EXPECT_LT(jobs[0].reason.size(), 600U);
  EXPECT_THAT(jobs[0].nodes, ElementsAre("n1", "r[1-"));
}

}  // namespace
}  // namespace hpcbatch

#include "foresight/replay/fidelity.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sstream>
#include <stdexcept>

namespace hpcbatch::foresight {
namespace {

Trace read(const std::string& text, const std::string& partition = "") {
  std::istringstream in(text);
  return read_trace(in, partition);
}

std::string refusal(const std::string& text, const std::string& partition = "") {
  try {
    read(text, partition);
  } catch (const std::invalid_argument& error) {
    return error.what();
  }
  return "";
}

constexpr const char* kTitles =
    "JobID|JobName|User|Submit|Start|End|Timelimit|NNodes|Partition|Priority\n";

TEST(TraceTest, WhatSacctPrints) {
  const Trace trace = read(
      std::string(kTitles) +
      "7|run12|eve|2026-01-02T10:00:00|2026-01-02T11:00:00|2026-01-02T11:30:00|1-02:00:00|2|gpu|"
      "99\n"
      "7.batch|batch||2026-01-02T10:00:00|2026-01-02T11:00:00|2026-01-02T11:30:00||1||\n"
      "6|run13|eve|2026-01-02T09:00:00|2026-01-02T09:00:05|2026-01-02T09:01:00|UNLIMITED|1|gpu|5\n"
      "8|run|bob|2026-01-02T10:00:00|Unknown|Unknown|01:00:00|1|gpu|5\n");
  ASSERT_EQ(trace.jobs.size(), 2U);
  EXPECT_EQ(trace.skipped, 1U);
  EXPECT_TRUE(trace.has_priorities);
  const TracedJob& first = trace.jobs[0];
  EXPECT_EQ(first.started - first.job.submitted, 5);
  EXPECT_EQ(first.job.limit, 365 * kDay);
  const Job& job = trace.jobs[1].job;
  EXPECT_EQ(job.submitted, 1'767'348'000);
  EXPECT_EQ(job.limit, 26 * kHour);
  EXPECT_EQ(job.runs, 30 * kMinute);
  EXPECT_EQ(job.nodes, 2);
  EXPECT_EQ(job.priority, 99);
  EXPECT_EQ(job.user, first.job.user);
  EXPECT_EQ(job.name, first.job.name);
}

TEST(TraceTest, ColumnsOfFixedWidthWithTitlesCutToIt) {
  const Trace trace = read(
      "2\n"
      "       JobID    UID               Start              Submit                 End TimelimitR  "
      " "
      "NNodes\n"
      "------------ ------ ------------------- ------------------- ------------------- ---------- "
      "--------\n"
      "478729\t00000\t2022-11-01T15:34:14\t2022-10-05T11:52:48\t2022-11-03T15:34:15\t2880\t2\n");
  ASSERT_EQ(trace.jobs.size(), 1U);
  EXPECT_EQ(trace.jobs[0].job.limit, 2 * kDay);
  EXPECT_EQ(trace.jobs[0].job.runs, 2 * kDay + 1);
}

TEST(TraceTest, OnePartitionAtATime) {
  const std::string text =
      std::string(kTitles) +
      "1|a|eve|2026-01-02T10:00:00|2026-01-02T11:00:00|2026-01-02T11:30:00|01:00:00|2|gpu|9\n"
      "2|a|eve|2026-01-02T10:00:00|2026-01-02T11:00:00|2026-01-02T11:30:00|01:00:00|2|cpu|9\n";
  EXPECT_THAT(refusal(text), ::testing::HasSubstr("several partitions (cpu, gpu)"));
  EXPECT_EQ(read(text, "gpu").jobs.size(), 1U);
  EXPECT_THAT(refusal(text, "fpga"), ::testing::HasSubstr("no job that has run in partition fpga"));
}

TEST(TraceTest, OneThatIsCutInALineIsTold) {
  const std::string good =
      "1|a|eve|2026-01-02T10:00:00|2026-01-02T11:00:00|2026-01-02T11:30:00|01:00:00|2|gpu|9";
  EXPECT_THAT(read(kTitles + good + "\n" + good.substr(0, 40)).notes,
              ::testing::Contains(::testing::HasSubstr("middle of a line")));
  EXPECT_THAT(read(kTitles + good + "\n").notes,
              ::testing::ElementsAre(::testing::HasSubstr("no column AllocCPUS")));
}

TEST(TraceTest, WhereJobsShareNodesTheirCpusCount) {
  const std::string titles = "JobID|Submit|Start|End|Timelimit|NNodes|AllocCPUS\n";
  const auto job = [](int id, const char* nodes, const char* cpus) {
    return std::to_string(id) +
           "|2026-01-02T10:00:00|2026-01-02T11:00:00|2026-01-02T11:30:00|01:00:00|" + nodes + "|" +
           cpus + "\n";
  };
  const Trace shared = read(titles + job(1, "1", "4") + job(2, "2", "64") + job(3, "1", "1"));
  EXPECT_EQ(shared.cpus_of_a_node, 32);
  EXPECT_EQ(shared.jobs[0].job.nodes, 4);
  EXPECT_EQ(shared.jobs[1].job.nodes, 64);
  const Trace whole = read(titles + job(1, "1", "32") + job(2, "2", "64"));
  EXPECT_EQ(whole.cpus_of_a_node, 0);
  EXPECT_EQ(whole.jobs[1].job.nodes, 2);
}

TEST(TraceTest, WhatIsNoneIsRefused) {
  EXPECT_THAT(refusal(""), ::testing::HasSubstr("this is no trace"));
  EXPECT_THAT(refusal("hello\nworld\n"), ::testing::HasSubstr("this is no trace"));
  EXPECT_THAT(refusal("JobID|Submit|Start\n"), ::testing::HasSubstr("no column"));
  EXPECT_THAT(refusal(kTitles), ::testing::HasSubstr("no job that has run (0 lines skipped)"));
}

TEST(TraceTest, NonsenseInALineIsSkippedAndCounted) {
  const std::string good =
      "1|a|eve|2026-01-02T10:00:00|2026-01-02T11:00:00|2026-01-02T11:30:00|01:00:00|2|gpu|9\n";
  const Trace trace =
      read(kTitles + good + "\n" +
           "2|a|eve|2026-13-02T10:00:00|2026-01-02T11:00:00|2026-01-02T11:30:00|01:00:00|2|gpu|9\n"
           "3|a|eve|2026-01-02T12:00:00|2026-01-02T11:00:00|2026-01-02T11:30:00|01:00:00|2|gpu|9\n"
           "4|a|eve|2026-01-02T10:00:00|2026-01-02T11:00:00|2026-01-02T11:30:00|soon|2|gpu|9\n"
           "5|cut off\n");
  EXPECT_EQ(trace.jobs.size(), 1U);
  EXPECT_EQ(trace.skipped, 4U);
}

TEST(TraceTest, RoundNumbersOfNodes) {
  const Trace trace = read(
      std::string(kTitles) +
      "1|a|eve|2026-01-02T10:00:00|2026-01-02T11:00:00|2026-01-02T11:30:00|01:00:00|2K|gpu|9\n"
      "2|a|eve|2026-01-02T10:00:00|2026-01-02T11:00:00|2026-01-02T11:30:00|01:00:00|1.50K|gpu|9\n"
      "3|a|eve|2026-01-02T10:00:00|2026-01-02T11:00:00|2026-01-02T11:30:00|01:00:00|99M|gpu|9\n");
  ASSERT_EQ(trace.jobs.size(), 2U);
  EXPECT_EQ(trace.jobs[0].job.nodes, 2048);
  EXPECT_EQ(trace.jobs[1].job.nodes, 1536);
}

TEST(TraceTest, ATraceOfMoreThanFiftyYearsIsDamaged) {
  EXPECT_THAT(
      refusal(std::string(kTitles) +
              "1|a|eve|1966-01-02T10:00:00|1966-01-02T11:00:00|1966-01-02T11:30:00|1:00|2|gpu|9\n"
              "2|a|eve|2026-01-02T10:00:00|2026-01-02T11:00:00|2026-01-02T11:30:00|1:00|2|gpu|9\n"),
      ::testing::HasSubstr("more than 50 years"));
}

}  // namespace
}  // namespace hpcbatch::foresight

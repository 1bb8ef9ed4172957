// How tasks failed, as people read it, and the command that gives more of what was too little.
#include "api/answers/submission_summary.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace hpcbatch {
namespace {

using namespace std::chrono_literals;
using testing::Optional;

std::optional<std::string> proposed(Failure failure, const Needs& needs) {
  return retry_with_more({{failure, needs}}, needs, "5", true);
}

Needs needing(std::int64_t memory, std::optional<Duration> time = {}) {
  Needs needs;
  needs.amounts.set(kMemory, Amount::of(memory));
  needs.time = time;
  return needs;
}

TEST(WaysOfFailing, InWords) {
  WayOfFailing way{
      .group = {.failure = Failure::ToolFailed, .exit_code = 3, .tasks = 7, .first = 2},
      .first = {},
      .item = "chr3.bam"};
  EXPECT_EQ(in_words(ArrayId{5}, way), "7 exit code 3: first 5.2 (item chr3.bam)");
  way.group = {.failure = Failure::ToolSignal, .signal = 9, .tasks = 1, .first = 1};
  way.item.clear();
  EXPECT_EQ(in_words(ArrayId{5}, way), "1 tool_signal (signal 9): first 5.1");
}

TEST(WaysOfFailing, TwiceOfWhatWasTooLittleIsProposed) {
  Needs needs;
  needs.amounts.set(kMemory, Amount::of(1536L << 20));
  needs.amounts.set(kDisk, Amount::of(10L << 30));
  needs.time = 90min;
  EXPECT_THAT(proposed(Failure::OomTask, needs),
              Optional(std::string(
                  "'hpcbatch retry 5 --failure oom_task --mem 3G' tries again with more")));
  EXPECT_THAT(proposed(Failure::DiskTask, needs),
              Optional(std::string(
                  "'hpcbatch retry 5 --failure disk_task --disk 20G' tries again with more")));
  EXPECT_THAT(proposed(Failure::TimeTask, needs),
              Optional(std::string(
                  "'hpcbatch retry 5 --failure time_task --time 3h' tries again with more")));
  needs.time = 250ms;
  EXPECT_THAT(proposed(Failure::TimeTask, needs),
              Optional(std::string(
                  "'hpcbatch retry 5 --failure time_task --time 1s' tries again with more")));
}

TEST(WaysOfFailing, WhereNothingWasAskedForTheSizeIsTheUsers) {
  EXPECT_THAT(proposed(Failure::OomTask, {}),
              Optional(std::string(
                  "'hpcbatch retry 5 --failure oom_task --mem SIZE' tries again with more")));
}

TEST(WaysOfFailing, OneCommandGivesAllThatWasTooLittle) {
  const Needs needs = needing(std::int64_t{1} << 30, 1h);
  EXPECT_THAT(retry_with_more({{Failure::OomTask, needs},
                               {Failure::ToolFailed, needs},
                               {Failure::TimeTask, needs},
                               {Failure::OomTask, needs}},
                              needs, "5", true),
              Optional(std::string("'hpcbatch retry 5 --failure oom_task --failure time_task --mem "
                                   "2G --time 2h' tries again with more")));
}

TEST(WaysOfFailing, NeverLessIsProposedThanTheOthersHaveByNow) {
  EXPECT_THAT(retry_with_more({{Failure::OomTask, needing(std::int64_t{1} << 30)}},
                              needing(std::int64_t{8} << 30), "5.2", false),
              Optional(std::string("'hpcbatch retry 5.2 --mem 8G' tries again with more")));
}

TEST(WaysOfFailing, NothingIsProposedWhereMoreWouldNotHelp) {
  EXPECT_EQ(proposed(Failure::ToolFailed, {}), std::nullopt);
  EXPECT_EQ(proposed(Failure::TimeTask, {}), std::nullopt);
  EXPECT_EQ(proposed(Failure::Cancelled, {}), std::nullopt);
}

}  // namespace
}  // namespace hpcbatch

// What a server keeps of batch jobs that have ended: asked for by sh with scripted commands, read
// from what a real OpenPBS 23.06 printed and from made-up records.
#include "pbs_commands.hpp"

#include "hpcbatch/contract/scheduler.hpp"
#include "hpcbatch/queue_history.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

namespace hpcbatch {
namespace {

using namespace std::chrono_literals;
using testing::HasSubstr;

CommandLine past_command(std::chrono::seconds from, std::chrono::seconds until) {
  const auto pbs = make();
  return dynamic_cast<const QueueHistory&>(*pbs).list_past(from, until);
}

Result<PastJobs> read_past(const CommandOutput& output) {
  const auto pbs = make();
  return dynamic_cast<const QueueHistory&>(*pbs).read_past(output);
}

Result<PastJobs> read_records(const std::string& records, int asked) {
  return read_past(answer(0, "hbasked " + std::to_string(asked) + "\n" + records + "hbend\n"));
}

// Sat Nov 21 07:16:11 2026, UTC.
constexpr auto kCame = 1795245371s;

TEST(PbsHistory, TheRecordedServersBatchJobs) {
  const auto past = read_records(recorded("ended.txt"), 13);
  ASSERT_TRUE(past) << past.error().text;
  EXPECT_FALSE(past->is_cut);
  // One was held until it was deleted, and one depended on what failed.
  ASSERT_EQ(past->jobs.size(), 11U);
  const PastJob& first = past->jobs.front();
  EXPECT_EQ(first.partition, "workq");
  EXPECT_EQ(first.user, "alice");
  EXPECT_EQ(first.cpus, 1);
  EXPECT_EQ(first.gpus, 0);
  EXPECT_EQ(first.submitted, kCame);
  EXPECT_EQ(first.eligible, kCame);
  EXPECT_EQ(first.started, kCame + 56s);
  EXPECT_EQ(first.ended, kCame + 66s);
}

std::string job(const std::string& id, const std::string& state, const std::string& more) {
  return "Job Id: " + id + ".vm\n    Job_Owner = bob@login\n    job_state = " + state +
         "\n    queue = gpuq\n    qtime = Sat Nov 21 07:16:11 2026\n" + more + "\n";
}

TEST(PbsHistory, WhatWaitsRunsAndEndedWithoutAMoment) {
  const std::string asked =
      "    Resource_List.ncpus = 8\n    Resource_List.ngpus = 2\n    Resource_List.walltime = "
      "01:00:00\n    etime = Sat Nov 21 07:17:11 2026\n";
  const auto past =
      read_records(job("1", "Q", asked + "    stime = Sat Nov 21 07:18:00 2026\n") +
                       job("2", "R", asked + "    stime = Sat Nov 21 07:20:00 2026\n") +
                       job("3", "F",
                           asked + "    stime = Sat Nov 21 07:20:00 2026\n    "
                                   "resources_used.walltime = 00:10:00\n") +
                       job("4", "F", asked + "    mtime = Sat Nov 21 07:30:00 2026\n") +
                       job("5", "H", "") + job("6", "M", asked),
                   6);
  ASSERT_TRUE(past) << past.error().text;
  ASSERT_EQ(past->jobs.size(), 4U);
  EXPECT_EQ(past->jobs[0].gpus, 2);
  EXPECT_EQ(past->jobs[0].cpus, 8);
  EXPECT_EQ(past->jobs[0].limit, 1h);
  EXPECT_EQ(past->jobs[0].eligible, kCame + 60s);
  EXPECT_EQ(past->jobs[0].started, std::nullopt) << "it waits again";
  EXPECT_EQ(past->jobs[1].started, kCame + 229s);
  EXPECT_EQ(past->jobs[1].ended, std::nullopt);
  EXPECT_EQ(past->jobs[2].ended, kCame + 829s) << "from how long it ran";
  EXPECT_EQ(past->jobs[3].started, std::nullopt);
  EXPECT_EQ(past->jobs[3].ended, kCame + 829s) << "deleted while it waited";
}

TEST(PbsHistory, HalfAnAnswerIsNone) {
  const std::string whole = "hbasked 13\n" + recorded("ended.txt") + "hbend\n";
  for (std::size_t size = 0; size < whole.size(); size += 97)
    EXPECT_FALSE(read_past(answer(0, whole.substr(0, size)))) << size;
  EXPECT_TRUE(read_past(answer(0, whole)));
  EXPECT_FALSE(read_records(recorded("ended.txt"), 27)) << "most that was listed was not told";
  EXPECT_FALSE(read_past(answer(1, whole, "qselect: cannot connect to server")));
  EXPECT_FALSE(read_past({.exit_code = 0, .timed_out = true, .standard_output = whole}));
}

TEST(PbsHistory, WhatWasNotToldInTimeIsCutAndTheLastDoubted) {
  const std::string one = "    stime = Sat Nov 21 07:20:00 2026\n";
  const auto past = read_records(job("1", "F", one) + job("2", "F", one) + "hbcut\n", 50);
  ASSERT_TRUE(past) << past.error().text;
  EXPECT_TRUE(past->is_cut);
  EXPECT_EQ(past->jobs.size(), 1U);
}

TEST(PbsHistory, MoreThanAListHoldsIsCut) {
  std::string records;
  for (int at = 0; at < 10'001; ++at)
    records += job(std::to_string(at), "F", "    stime = Sat Nov 21 07:20:00 2026\n");
  const auto past = read_records(records, 10'001);
  ASSERT_TRUE(past);
  EXPECT_TRUE(past->is_cut);
  EXPECT_EQ(past->jobs.size(), 10'000U);
}

class PbsPast : public PbsShell {
 protected:
  /// Of the times that qselect is asked for it tells the arguments; 12[] has begun, 9 waits.
  void SetUp() override {
    PbsShell::SetUp();
    scripted("qselect",
             "echo \"$TZ $*\" >> asked\n"
             "case $1 in -H) echo 3.vm; echo '12[].vm';; *) echo 9.vm;; esac");
  }
  std::string asked() const { return sh("cat asked").standard_output; }
};

TEST_F(PbsPast, AsksForWhatEndedAndForWhatHasNot) {
  is_openpbs();
  file("qstat.more",
       "[ \"$*\" = '-x -f 3.vm 12[].vm 9.vm' ] || exit 1\n"
       "for id in 3 '12[]'; do printf 'Job Id: %s.vm\\n    job_state = F\\n    qtime = Sat Nov 21 "
       "07:16:11 2026\\n"
       "    stime = Sat Nov 21 07:16:11 2026\\n    Variable_List = A=1,\\n\\tstime=x\\n\\n' "
       "\"$id\"; done\n"
       "exit 35  # 9 is gone by now\n");
  const auto past = read_past(run(past_command(kCame, kCame + 6h)));
  ASSERT_TRUE(past) << past.error().text;
  EXPECT_EQ(past->jobs.size(), 2U);
  EXPECT_EQ(asked(),
            "UTC0 -H -tm.ge.202611210716.11 -tq.lt.202611211316.11\n"
            "UTC0 -tq.lt.202611211316.11\n");
}

TEST_F(PbsPast, AServerThatKeepsNothingIsToldFromOneThatDoesNotAnswer) {
  is_openpbs();
  scripted("qselect", "echo 'qselect: job_history_enable is set to false' >&2");
  auto past = read_past(run(past_command(kCame, kCame + 6h)));
  ASSERT_FALSE(past);
  EXPECT_EQ(past.error().kind, Error::Kind::Rejected);
  EXPECT_THAT(past.error().text, HasSubstr("job_history_enable"));
  scripted("qselect", "echo 'qselect: cannot connect to server vm (errno=15010)' >&2; exit 1");
  past = read_past(run(past_command(kCame, kCame + 6h)));
  ASSERT_FALSE(past);
  EXPECT_EQ(past.error().kind, Error::Kind::Transient);
  EXPECT_THAT(past.error().text, HasSubstr("cannot connect to server vm"));
}

TEST_F(PbsPast, NobodyButOpenPbsKeepsThem) {
  is_torque();
  auto past = read_past(run(past_command(kCame, kCame + 6h)));
  ASSERT_FALSE(past);
  EXPECT_EQ(past.error().kind, Error::Kind::Rejected);
}

TEST_F(PbsPast, NothingHappened) {
  is_openpbs();
  scripted("qselect", "exit 0");
  const auto past = read_past(run(past_command(kCame, kCame + 6h)));
  ASSERT_TRUE(past) << past.error().text;
  EXPECT_TRUE(past->jobs.empty());
}

}  // namespace
}  // namespace hpcbatch

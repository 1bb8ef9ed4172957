// Tables of squeue and sacct, and a job in full.
#include "slurm_commands/commands.hpp"
#include "slurm_commands/listing.hpp"
#include "slurm_commands/options.hpp"

#include <gmock/gmock.h>
#include <boost/json/parse.hpp>
#include <boost/json/serialize.hpp>

#include <cstdlib>
#include <ctime>

namespace hpcbatch::slurm_commands {
namespace {

using testing::HasSubstr;

constexpr const char* kLines = R"([
  {"id": "13.2-9", "state": "waiting", "waits_for": "room", "indices": "1-9", "name": "sweep",
   "max_running": 3, "needs": {"cpus": 2, "tags": ["partition=long"]}, "submitted_at": 1800000000},
  {"id": "12", "state": "failed", "failure": "tool_failed", "exit_code": 3,
   "name": "align-everything", "needs": {"cpus": 2, "memory": 1073741824, "time": 3600,
   "tags": ["account=lab"]}, "node": "n1", "submitted_at": 1800000000, "started_at": 1800000010,
   "ended_at": 1800000075, "peak_memory": 5242880, "directory": "/w"},
  {"id": "11", "state": "running", "name": "r", "needs": {"cpus": 1}, "node": "n2",
   "started_at": 1800000000, "submitted_at": 1799999990}])";

class SlurmTables : public testing::Test {
 protected:
  SlurmTables() {
    ::setenv("TZ", "UTC", 1);
    ::tzset();
    viewed_.now = 1'800'000'100;
    viewed_.user = "ada";
    viewed_.uid = 1000;
  }
  std::string squeue_text(std::string_view format) const {
    const auto columns = squeue_columns(format, viewed_);
    std::string text = title_line(columns) + "\n";
    for (const Job& job : jobs_) text += line_of(columns, job) + "\n";
    return text;
  }
  std::string sacct_text(const std::vector<std::string>& fields, const SacctStyle& style,
                         bool steps = false) const {
    const SacctTable table(fields, style, viewed_);
    std::string text = table.titles();
    for (const Job& job : jobs_) {
      text += table.line({job, ""});
      if (steps && job.started) text += table.line({job, "batch"});
    }
    return text;
  }
  Viewed viewed_;
  std::vector<Job> jobs_{jobs_of(boost::json::parse(kLines).as_array(), true)};
};

TEST_F(SlurmTables, TheUsualQueue) {
  EXPECT_EQ(
      squeue_text(kSqueueFormat),
      "             JOBID PARTITION     NAME     USER ST       TIME  NODES NODELIST(REASON)\n"
      "        2000000011  hpcbatch        r      ada  R       1:40      1 n2\n"
      "        2000000012  hpcbatch align-ev      ada  F       1:05      1 (NonZeroExitCode)\n"
      "2000000013_[2-9%3]      long    sweep      ada PD       0:00      1 (Priority)\n");
}

TEST_F(SlurmTables, WhatClientsAskOfTheQueue) {
  EXPECT_EQ(squeue_text("%i %t"), "JOBID ST\n2000000011 R\n2000000012 F\n2000000013_[2-9%3] PD\n");
  EXPECT_EQ(squeue_text("%A|%F|%K|%l|%m|%C"),
            "JOBID|ARRAY_JOB_ID|ARRAY_TASK_ID|TIME_LIMIT|MIN_MEMORY|CPUS\n"
            "2000000011|2000000011|N/A|UNLIMITED|0M|1\n"
            "2000000012|2000000012|N/A|1:00:00|1G|2\n"
            "2000000013|2000000013|2-9%3|UNLIMITED|0M|2\n");
  const auto columns = squeue_long_columns("JobArrayID:12,StateCompact,Reason:.8", viewed_);
  EXPECT_EQ(title_line(columns), "JOBID       ST                    REASON");
  EXPECT_EQ(line_of(columns, jobs_[0]), "2000000011  R                       None");
  EXPECT_THROW(squeue_columns("%!", viewed_), CommandFailed);
  EXPECT_THROW(squeue_long_columns("nonsense", viewed_), CommandFailed);
}

TEST_F(SlurmTables, TheUsualAccounting) {
  EXPECT_EQ(sacct_text(split_at(kSacctFields, ','), {}),
            "JobID           JobName  Partition    Account  AllocCPUS      State ExitCode \n"
            "------------ ---------- ---------- ---------- ---------- ---------- -------- \n"
            "2000000011            r   hpcbatch                     1    RUNNING      0:0 \n"
            "2000000012   align-eve+   hpcbatch        lab          2     FAILED      3:0 \n"
            "2000000013_+      sweep       long                     2    PENDING      0:0 \n");
}

TEST_F(SlurmTables, WhatClientsAskOfAccounting) {
  EXPECT_EQ(sacct_text({"JobID", "State", "NodeList"}, {.parsable = true}),
            "JobID|State|NodeList\n2000000011|RUNNING|n2\n2000000012|FAILED|n1\n"
            "2000000013_[2-9%3]|PENDING|None assigned\n");
  jobs_ = {jobs_[1]};
  EXPECT_EQ(sacct_text({"jobidraw", "elapsed", "maxrss", "reqmem", "end"},
                       {.parsable = true, .last_delimiter = true}, true),
            "JobIDRaw|Elapsed|MaxRSS|ReqMem|End|\n"
            "2000000012|00:01:05||1G|2027-01-15T08:01:15|\n"
            "2000000012.batch|00:01:05|5120K||2027-01-15T08:01:15|\n");
  EXPECT_EQ(sacct_text({"State%-12", "ExitCode%9"}, {}),
            "State         ExitCode \n------------ --------- \nFAILED             3:0 \n");
  EXPECT_THROW(SacctTable({"nonsense"}, {}, viewed_), CommandFailed);
}

TEST_F(SlurmTables, EndsThatNobodyChose) {
  Job job = jobs_[1];
  const auto told = [&](JobState state, int signal) {
    job.state = state;
    job.exit_code = 0;
    job.signal = signal;
    return SacctTable({"State", "ExitCode"}, {.parsable = true}, viewed_).line({job, ""});
  };
  EXPECT_EQ(told(JobState::Failed, 9), "FAILED|0:9\n");
  EXPECT_EQ(told(JobState::Cancelled, 15), "CANCELLED by 1000|0:0\n");
  EXPECT_EQ(told(JobState::Timeout, 15), "TIMEOUT|0:0\n");
  EXPECT_EQ(SacctTable({"State", "ExitCode"}, {.parsable = true}, viewed_).line({job, "batch"}),
            "CANCELLED|0:15\n");
  EXPECT_EQ(told(JobState::OutOfMemory, 9), "OUT_OF_MEMORY|0:125\n");
}

TEST_F(SlurmTables, OrderOfTheQueue) {
  sort_jobs(jobs_, "-i", viewed_);
  EXPECT_EQ(jobs_.front().id, 13U);
  sort_jobs(jobs_, "t,i", viewed_);
  EXPECT_EQ(words_of(jobs_.front().state).letters, "F");
  auto waiting = jobs_of(boost::json::parse(R"([{"id": "20", "state": "held"},
      {"id": "21", "state": "waiting", "waits_for": "room", "priority": -100},
      {"id": "22.2-3", "state": "waiting", "waits_for": "room", "indices": "1-3"},
      {"id": "22.1", "state": "running", "indices": "1-3"},
      {"id": "23", "state": "waiting", "waits_for": "room", "needs": {"time": 60}},
      {"id": "24", "state": "running", "needs": {"time": 600}}])")
                             .as_array(),
                         true);
  const auto order = [&](const char* by) {
    sort_jobs(waiting, by, viewed_);
    std::string ids;
    for (const Job& job : waiting) ids += job_id(job).substr(8) + " ";
    return ids;
  };
  EXPECT_EQ(order("P,t,-p"), "22_[2-3] 23 21 20 22_1 24 ");
  EXPECT_EQ(order("-i"), "24 23 22_[2-3] 22_1 21 20 ");
  EXPECT_EQ(order("l,i"), "23 24 20 21 22_1 22_[2-3] ") << "as a time";
  EXPECT_THROW(sort_jobs(jobs_, "!", viewed_), CommandFailed);
}

TEST_F(SlurmTables, AJobInFull) {
  const std::string text = job_details(jobs_[1], viewed_, true);
  EXPECT_THAT(text, HasSubstr("JobId=2000000012 JobName=align-everything UserId=ada(1000)"));
  EXPECT_THAT(text, HasSubstr("JobState=FAILED Reason=NonZeroExitCode"));
  EXPECT_THAT(text, HasSubstr("ExitCode=3:0"));
  EXPECT_THAT(text, HasSubstr("Command=(null) WorkDir=/w StdErr=/dev/null StdIn=/dev/null"));
  EXPECT_THAT(text, testing::EndsWith("Power= \n"));
  EXPECT_THAT(job_details(jobs_[0], viewed_, false), HasSubstr("\n   JobState=RUNNING"));
}

TEST_F(SlurmTables, WhatAJobRunsAndWrites) {
  const auto jobs = jobs_of(boost::json::parse(R"([{"id": "20", "state": "done", "node": "n3",
      "stdout": "/w/o.{node}", "stderr": "/w/e", "command": ["sleep", "5"], "slurm_tasks": "2",
      "needs": {"cpus": 4, "gpus": {"a100": 2}}, "priority": -100, "submitted_at": 1800000000}])")
                                .as_array(),
                            true);
  const std::string text = job_details(jobs.at(0), viewed_, true);
  EXPECT_THAT(text, HasSubstr("Priority=4294901660 Nice=100 "));
  EXPECT_THAT(text, HasSubstr("NumCPUs=4 NumTasks=2 CPUs/Task=2 "));
  EXPECT_THAT(text, HasSubstr("TRES=cpu=4,node=1,billing=4,gres/gpu=2 "));
  EXPECT_THAT(text,
              HasSubstr("Command=sleep 5 WorkDir= StdErr=/w/e StdIn=/dev/null StdOut=/w/o.n3"));
  EXPECT_THAT(text, HasSubstr("TresPerNode=gres:gpu:a100:2"));
  const auto columns = squeue_long_columns("StdOut:|,numtasks:4,nice:|", viewed_);
  EXPECT_EQ(line_of(columns, jobs.at(0)), "/w/o.n3|2   100|");
}

TEST_F(SlurmTables, WhatAJobWaitsFor) {
  const auto told = [&](const std::string& open) {
    const std::string line = R"({"id": "20", "state": "waiting", "waits_for": "tasks",
      "after": ["12.3", "13", "13", "14"], "after_delays": [0, 0, 0, 300],
      "after_how": ["after", "after_any", "after_any", "after_start"],
      "after_first": {"12": 0, "13": 1})";
    return dependency_text(
        jobs_of(boost::json::parse("[" + line + open + "}]").as_array(), true).at(0), viewed_);
  };
  EXPECT_EQ(told(R"(, "after_open": ["12.3", "13", "14"])"),
            "afterok:2000000012_2(unfulfilled),afterany:2000000013_*(unfulfilled),"
            "after:2000000014+5(unfulfilled)");
  EXPECT_EQ(told(R"(, "after_open": ["14"])"), "after:2000000014+5(unfulfilled)");
  EXPECT_EQ(told(""), "(null)") << "all of them have come";
}

TEST_F(SlurmTables, WhatWaitsOfAnArrayIsInBrackets) {
  const auto shown = [](const std::string& lines, bool apart = false) {
    auto jobs = jobs_of(boost::json::parse("[" + lines + "]").as_array(), true);
    if (apart) jobs = one_by_one(jobs);
    std::string text;
    for (const Job& job : jobs) text += job_id(job) + " ";
    return text;
  };
  const std::string alone = R"({"id": "20.7", "state": "held", "indices": "7"})";
  EXPECT_EQ(shown(alone), "2000000020_[7] ");
  EXPECT_EQ(shown(alone, true), "2000000020_7 ");
  EXPECT_EQ(shown(R"({"id": "20.7", "state": "waiting", "waits_for": "room", "indices": "1-7"})"),
            "2000000020_[7] ");
  EXPECT_EQ(shown(R"({"id": "20.7", "state": "held", "indices": "1-7"})"), "2000000020_7 ")
      << "it was held alone";
  auto jobs =
      jobs_of(boost::json::parse(
                  R"([{"id": "20.1-7", "state": "held", "indices": "1-7", "max_running": 2}])")
                  .as_array(),
              true);
  EXPECT_EQ(job_id(jobs.at(0)), "2000000020_[1-7%2]");
  cut_to(jobs, {*parse_job_name("2000000020_2"), *parse_job_name("2000000020_3")});
  EXPECT_EQ(job_id(jobs.at(0)), "2000000020_[2-3]");
  cut_to(jobs, {*parse_job_name("2000000020_2")});
  EXPECT_EQ(job_id(jobs.at(0)), "2000000020_2");
}

TEST_F(SlurmTables, SpansOfTimeAreNotCutAtTheRight) {
  jobs_[0].time_limit = 183'600;
  EXPECT_EQ(line_of(squeue_columns("%.5l|%5l|%.3u", viewed_), jobs_[0]), "2-03:00:00|2-03:|ada");
  EXPECT_EQ(title_line(squeue_columns("%.5l", viewed_)), "TIME_");
}

TEST_F(SlurmTables, MemoryForEachCpuIsShownSo) {
  const auto jobs = jobs_of(boost::json::parse(R"([{"id": "20", "state": "held",
      "slurm_memory_per_cpu": "200", "slurm_comment": "why", "slurm_tasks": "2",
      "needs": {"cpus": 4, "memory": 838860800}}])")
                                .as_array(),
                            true);
  const std::string text = job_details(jobs.at(0), viewed_, true);
  EXPECT_THAT(text, HasSubstr("MinCPUsNode=2 MinMemoryCPU=200M "));
  EXPECT_THAT(text, HasSubstr(" Comment=why "));
  EXPECT_EQ(line_of(squeue_columns("%m %k %c %C", viewed_), jobs.at(0)), "200M why 2 4");
}

TEST_F(SlurmTables, AmountsInAUnit) {
  viewed_.unit = 'K';
  jobs_ = {jobs_[1]};
  EXPECT_EQ(sacct_text({"ReqMem", "AllocTRES"}, {.parsable = true}, true),
            "ReqMem|AllocTRES\n1048576K|billing=2,cpu=2,mem=1048576K,node=1\n"
            "|cpu=2,mem=1048576K,node=1\n");
  EXPECT_EQ(sacct_text({"TimelimitRaw"}, {}).substr(0, 11), "TimelimitR ") << "cut as by Slurm";
}

TEST_F(SlurmTables, JsonHasTheKeysOfSlurm) {
  const auto queue = jobs_json(jobs_, viewed_);
  const auto& one = queue.at("jobs").as_array().at(1).as_object();
  EXPECT_EQ(one.at("job_id").to_number<std::uint64_t>(), 2000000012U);
  EXPECT_EQ(boost::json::serialize(one.at("job_state")), "[\"FAILED\"]");
  EXPECT_EQ(one.at("time_limit").as_object().at("number").as_int64(), 60);
  const auto past = accounting_json(jobs_, viewed_);
  const auto& job = past.at("jobs").as_array().at(1).as_object();
  EXPECT_EQ(job.at("time").as_object().at("elapsed").as_int64(), 65);
  const auto& code = job.at("exit_code").as_object().at("return_code").as_object();
  EXPECT_EQ(code.at("number").as_int64(), 3);
}

}  // namespace
}  // namespace hpcbatch::slurm_commands

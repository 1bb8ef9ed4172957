// What the engine says of tasks -> jobs as Slurm tells them.
#include "slurm_commands/job.hpp"

#include <gmock/gmock.h>
#include <boost/json/parse.hpp>

#include <algorithm>

namespace hpcbatch::slurm_commands {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

std::vector<Job> jobs_in(const std::string& text) {
  return jobs_of(boost::json::parse(text).as_array(), true);
}

std::vector<std::string> ids_of(const std::vector<Job>& jobs) {
  std::vector<std::string> ids;
  ids.reserve(jobs.size());
  for (const Job& job : jobs) ids.push_back(job_id(job));
  return ids;
}

constexpr const char* kArray = R"([
  {"id": "12.8-10", "state": "waiting", "waits_for": "room", "indices": "1-10", "numbered": true, "from_zero": true,
   "max_running": 2},
  {"id": "12.6", "state": "waiting", "waits_for": "room", "indices": "1-10", "numbered": true, "from_zero": true},
  {"id": "12.2", "state": "running", "indices": "1-10", "numbered": true, "from_zero": true, "started_at": 5},
  {"id": "12.1", "state": "failed", "failure": "tool_failed", "exit_code": 3, "indices": "1-10",
   "numbered": true, "from_zero": true},
  {"id": "11", "state": "held"}])";

TEST(SlurmJobs, WhatWaitsOfAnArrayIsOneJob) {
  const std::vector<Job> jobs = jobs_in(kArray);
  EXPECT_THAT(ids_of(jobs),
              ElementsAre("2000000011", "2000000012_0", "2000000012_1", "2000000012_[5,7-9%2]"));
  EXPECT_EQ(jobs[0].reason, "JobHeldUser");
  EXPECT_EQ(number_of(jobs[2]), 2000000013U) << "one number for each of them";
  EXPECT_EQ(array_number_of(jobs[2]), 2000000012U);
  EXPECT_THAT(engine_ids(jobs[3]), ElementsAre("12.8-10", "12.6"));
  EXPECT_THAT(engine_ids(jobs[0]), ElementsAre("11"));
  EXPECT_THAT(ids_of(one_by_one(jobs)),
              ElementsAre("2000000011", "2000000012_0", "2000000012_1", "2000000012_5",
                          "2000000012_7", "2000000012_8", "2000000012_9"));
}

TEST(SlurmJobs, NumbersFollowThePositionsOfIndices) {
  const auto jobs =
      jobs_in(R"([{"id": "20.105", "state": "done", "indices": "5,55,105", "numbered": true}])");
  EXPECT_EQ(number_of(jobs[0]), 2000000022U);
  EXPECT_EQ(job_id(jobs[0]), "2000000020_105");
  const auto plain = jobs_in(R"([{"id": "20.105", "state": "done", "indices": "5,55,105"}])");
  EXPECT_EQ(number_of(plain[0]), 2000000020U) << "the next numbers are other submissions'";
}

TEST(SlurmJobs, EachEndIsAState) {
  const auto state_of = [](const std::string& failure) {
    const auto jobs = jobs_in(R"([{"id": "1", "state": "failed", "failure": ")" + failure + "\"}]");
    return std::string(words_of(jobs[0].state).letters);
  };
  EXPECT_EQ(state_of("tool_failed"), "F");
  EXPECT_EQ(state_of("tool_signal"), "F");
  EXPECT_EQ(state_of("oom_task"), "OOM");
  EXPECT_EQ(state_of("time_task"), "TO");
  EXPECT_EQ(state_of("node_lost"), "NF");
  EXPECT_EQ(state_of("pilot_preempted"), "PR");
  EXPECT_EQ(state_of("dependency_failed"), "CA");
  EXPECT_EQ(parse_job_state("completed"), JobState::Completed);
  EXPECT_EQ(parse_job_state("pd"), JobState::Pending);
  EXPECT_EQ(parse_job_state("SUSPENDED"), std::nullopt);
  EXPECT_TRUE(is_slurm_state("s"));
  EXPECT_FALSE(is_slurm_state("nonsense"));
}

TEST(SlurmJobs, ReasonsAreSlurmsWords) {
  const auto reason_of = [](const std::string& more) {
    return jobs_in(R"([{"id": "1", )" + more + "}]")[0].reason;
  };
  EXPECT_EQ(reason_of(R"("state": "waiting", "waits_for": "tasks")"), "Dependency");
  EXPECT_EQ(reason_of(R"("state": "waiting", "waits_for": "its_array")"), "JobArrayTaskLimit");
  EXPECT_EQ(reason_of(R"("state": "waiting", "waits_for": "room")"), "Priority");
  EXPECT_EQ(reason_of(R"("state": "waiting", "pilot": "hb1.0")"), "Resources");
  EXPECT_EQ(reason_of(R"("state": "failed", "failure": "dependency_failed")"),
            "DependencyNeverSatisfied");
  EXPECT_EQ(reason_of(R"("state": "running")"), "None");
}

TEST(SlurmJobs, NamesOfJobs) {
  const auto whole = parse_job_name("2000000012");
  ASSERT_TRUE(whole);
  EXPECT_FALSE(whole->indices);
  const auto some = parse_job_name("2000000012_[0-1,7]");
  ASSERT_TRUE(some);
  EXPECT_EQ(to_string(*some->indices), "0-1,7");
  EXPECT_EQ(parse_job_name("2000000012_3.batch")->step, "batch");
  for (const char* wrong : {"", "x", "12_", "12_[", "12_x", "_3", "12 13"})
    EXPECT_FALSE(parse_job_name(wrong)) << wrong;
  EXPECT_THAT(split_job_names("1_[2,3],4,,5"), ElementsAre("1_[2,3]", "4", "5"));
  EXPECT_THAT(split_job_names(""), IsEmpty());
}

TEST(SlurmJobs, WhichOnesANameMeans) {
  const std::vector<Job> jobs = jobs_in(kArray);
  const auto named = [&](const char* text) {
    std::vector<std::string> ids;
    for (const Job& job : jobs) {
      if (is_named(job, *parse_job_name(text))) ids.push_back(job_id(job));
    }
    return ids;
  };
  EXPECT_THAT(named("2000000012"),
              ElementsAre("2000000012_0", "2000000012_1", "2000000012_[5,7-9%2]"));
  EXPECT_THAT(named("2000000012_1"), ElementsAre("2000000012_1"));
  EXPECT_THAT(named("2000000013"), ElementsAre("2000000012_1")) << "by its own number";
  EXPECT_THAT(named("2000000012_8"), ElementsAre("2000000012_[5,7-9%2]"));
  EXPECT_THAT(named("2000000011"), ElementsAre("2000000011"));
  EXPECT_THAT(named("2000000011_1"), IsEmpty());
}

TEST(SlurmJobs, OfThoseThatWaitTogetherOnlyTheNamedOnesStay) {
  const auto ids_meant = [](const std::vector<std::string>& names) {
    std::vector<JobName> parsed;
    parsed.reserve(names.size());
    for (const std::string& name : names) parsed.push_back(*parse_job_name(name));
    std::vector<Job> jobs{jobs_in(kArray).at(3)};
    std::erase_if(jobs, [&](const Job& job) {
      return std::none_of(parsed.begin(), parsed.end(),
                          [&](const JobName& name) { return is_named(job, name); });
    });
    cut_to(jobs, parsed);
    return jobs.empty() ? std::vector<std::string>{} : engine_ids(jobs.front());
  };
  EXPECT_THAT(ids_meant({"2000000012_5"}), ElementsAre("12.6"));
  EXPECT_THAT(ids_meant({"2000000012_[0-7]"}), ElementsAre("12.8", "12.6"));
  EXPECT_THAT(ids_meant({"2000000017"}), ElementsAre("12.6")) << "the number of its own";
  EXPECT_THAT(ids_meant({"2000000017", "2000000012_9"}), ElementsAre("12.10", "12.6"));
  EXPECT_THAT(ids_meant({"2000000012", "2000000017"}), ElementsAre("12.8-10", "12.6"));
  EXPECT_THAT(ids_meant({"2000000013"}), IsEmpty()) << "it runs";
  EXPECT_THAT(ids_meant({"2000000022"}), IsEmpty()) << "behind the last one";
}

}  // namespace
}  // namespace hpcbatch::slurm_commands
